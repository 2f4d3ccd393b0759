// Keeps an open dashboard up to date: asks for changed panels, and changes only the elements that differ.
// Other elements stay, so that expanded, scrolled and focused ones are kept.
"use strict";

{
    const LONGEST_WAIT = 60000;
    const PATIENCE = 20000;
    // A single late answer is not reported, only the second in a row.
    const TOLD_FROM = 2;
    // Attributes that the reader changes, unknown to the server.
    const OF_READER = new Set(["open"]);

    const board = document.getElementById("jq-board");
    if (board) {
        keepUpToDate(board);
    }

    function keepUpToDate(board) {
        const news = document.getElementById("jq-news");
        const asOf = document.getElementById("jq-asof");
        const pause = document.getElementById("jq-pause");
        let timer = null;
        let asking = false;
        let paused = false;
        let failures = 0;

        function plan() {
            clearTimeout(timer);
            if (!paused && !document.hidden) {
                timer = setTimeout(ask, Math.min(board.dataset.jqEvery * 1000 * 2 ** failures, LONGEST_WAIT));
            }
        }

        async function ask() {
            if (asking) {
                return;
            }
            asking = true;
            try {
                const answer = await fetch(address(), {
                    headers: {Accept: "application/json"},
                    redirect: "manual",
                    signal: AbortSignal.timeout(PATIENCE),
                });
                if (answer.ok) {
                    show(await answer.json());
                } else {
                    // A user who was signed out is redirected to the login page.
                    fail(answer.type === "opaqueredirect" || answer.status === 403 ? "jqStranger" : "jqStale");
                }
            } catch {
                fail("jqStale");
            }
            asking = false;
            plan();
        }

        function address() {
            const found = new URL(board.dataset.jqAddress, window.location.href);
            const known = Array.from(board.querySelectorAll("[data-jq-part]"), (part) => part.dataset.jqDigest);
            found.searchParams.set("known", known.join());
            return found;
        }

        function show(answer) {
            failures = 0;
            tell("");
            asOf.textContent = answer.at;
            for (const part of board.querySelectorAll("[data-jq-part]")) {
                const changed = answer.parts[part.dataset.jqPart];
                if (changed) {
                    renew(part, changed.html);
                    part.dataset.jqDigest = changed.digest;
                }
            }
        }

        function fail(why) {
            failures += 1;
            if (failures >= TOLD_FROM) {
                tell(board.dataset[why].replace("%s", asOf.textContent));
            }
        }

        // Screen readers announce each change of this text, so it only changes if there is something to say.
        function tell(text) {
            if (news.textContent !== text) {
                news.textContent = text;
            }
        }

        pause.addEventListener("click", () => {
            paused = !paused;
            pause.textContent = paused ? board.dataset.jqGoOn : board.dataset.jqPause;
            if (paused) {
                clearTimeout(timer);
            } else {
                ask();
            }
        });
        document.addEventListener("visibilitychange", () => {
            if (document.hidden) {
                clearTimeout(timer);
            } else if (!paused) {
                ask();
            }
        });

        document.getElementById("jq-reload").hidden = true;
        pause.hidden = false;
        plan();
    }

    function renew(part, html) {
        const focused = part.contains(document.activeElement) ? document.activeElement : null;
        const link = focused && focused.getAttribute("href");
        const fresh = document.createElement("template");
        fresh.innerHTML = html;
        fitChildren(part, fresh.content);
        // Rows move and disappear. The focus follows its row, or stays nearby.
        if (link && (document.activeElement !== focused || focused.getAttribute("href") !== link)) {
            const moved = Array.from(part.querySelectorAll("a")).find((one) => one.getAttribute("href") === link);
            part.tabIndex = -1;
            (moved || part).focus({preventScroll: true});
        }
    }

    function fitChildren(old, fresh) {
        const wanted = Array.from(fresh.childNodes);
        while (old.childNodes.length > wanted.length) {
            old.lastChild.remove();
        }
        wanted.forEach((child, place) => {
            const here = old.childNodes[place];
            if (!here) {
                old.append(child);
            } else if (here.nodeName !== child.nodeName) {
                here.replaceWith(child);
            } else if (here.nodeType === Node.ELEMENT_NODE) {
                fitAttributes(here, child);
                fitChildren(here, child);
            } else if (here.data !== child.data) {
                here.data = child.data;
            }
        });
    }

    function fitAttributes(old, fresh) {
        for (const {name} of Array.from(old.attributes)) {
            if (!fresh.hasAttribute(name) && !OF_READER.has(name)) {
                old.removeAttribute(name);
            }
        }
        for (const {name, value} of fresh.attributes) {
            if (old.getAttribute(name) !== value) {
                old.setAttribute(name, value);
            }
        }
    }
}
