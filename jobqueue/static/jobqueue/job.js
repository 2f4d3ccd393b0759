/* Updates an open job page: asks every second for changes, and replaces the changed parts. Also copies JSON.
   Without this script, the page is complete but stays as it was loaded. */
"use strict";

(() => {
    const EVERY = 1000;
    const SELDOM = 30000;
    const PATIENCE = 15000;
    const CAN_HOLD_FOCUS = "a[href], button, input, select, textarea, summary, [tabindex]";

    const page = document.querySelector("[data-jq-job]");
    if (!page) {
        return;
    }
    document.documentElement.classList.add("jq-scripted");

    /* Copying */

    document.addEventListener("click", async (event) => {
        const button = event.target.closest("[data-jq-copy]");
        if (!button) {
            return;
        }
        const box = button.closest(".jq-json");
        const tree = box.querySelector(".jq-tree").cloneNode(true);
        tree.querySelectorAll(".jq-json-note").forEach((note) => note.remove());
        const text = tree.textContent.trim();
        const told = box.querySelector("[role=status]");
        try {
            await navigator.clipboard.writeText(text);
            told.textContent = button.dataset.done;
        } catch {
            // Without HTTPS there is no clipboard.
            select(button, box, text);
            told.textContent = button.dataset.selected;
        }
    });

    function select(button, box, text) {
        const there = box.querySelector("textarea");
        const area = there || document.createElement("textarea");
        area.readOnly = true;
        area.value = text;
        area.setAttribute("aria-label", button.getAttribute("aria-label"));
        if (!there) {
            box.insertBefore(area, box.querySelector(".jq-tree"));
            area.addEventListener("blur", () => area.remove());
        }
        area.focus();
        area.select();
    }

    /* Updates */

    if (!page.dataset.jqLive) {
        return;
    }
    const places = Array.from(page.querySelectorAll("[data-jq-parts]"));
    const pause = page.querySelector("[data-jq-pause]");
    const trouble = page.querySelector("[data-jq-trouble]");
    const said = page.querySelector("[data-jq-said]");
    const parts = {};
    // The markup that an element was made from. Expanding an element changes the element, but not this.
    const sources = new WeakMap();
    let status = page.dataset.jqStatus;
    let token = "";
    let wait = EVERY;
    let timer = null;
    let asking = false;
    let isOver = false;

    for (const place of places) {
        place.tabIndex = -1;
        for (const child of place.children) {
            sources.set(child, child.outerHTML);
        }
    }

    function keyOf(element, index) {
        return element.dataset.jqKey || `#${index}`;
    }

    function put(place, markup) {
        const template = document.createElement("template");
        template.innerHTML = markup;
        const old = new Map(Array.from(place.children, (child, index) => [keyOf(child, index), child]));
        // A copy: elements that move into the page leave the template.
        const wanted = Array.from(template.content.children).map((fresh, index) => {
            const key = keyOf(fresh, index);
            const there = old.get(key);
            old.delete(key);
            return there && stays(there, fresh) ? there : exchanged(place, there, fresh);
        });
        for (const gone of old.values()) {
            const hadFocus = gone.contains(document.activeElement);
            gone.remove();
            if (hadFocus) {
                place.focus();
            }
        }
        wanted.forEach((element, index) => {
            if (place.children[index] !== element) {
                place.insertBefore(element, place.children[index] || null);
            }
        });
    }

    function stays(there, fresh) {
        // A field is not replaced while someone types in it.
        const typing = there.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
        return typing || sources.get(there) === fresh.outerHTML;
    }

    function exchanged(place, there, fresh) {
        sources.set(fresh, fresh.outerHTML);
        if (!there) {
            return fresh;
        }
        const folds = there.querySelectorAll("details");
        fresh.querySelectorAll("details").forEach((fold, index) => {
            if (folds[index]) {
                fold.open = folds[index].open;
            }
        });
        const focused = there.contains(document.activeElement) ? document.activeElement : null;
        const index = focused ? Array.from(there.querySelectorAll(CAN_HOLD_FOCUS)).indexOf(focused) : -1;
        there.replaceWith(fresh);
        if (focused) {
            (counterpart(fresh, focused, index) || place).focus({ preventScroll: true });
        }
        return fresh;
    }

    function counterpart(fresh, focused, index) {
        const candidates = Array.from(fresh.querySelectorAll(CAN_HOLD_FOCUS));
        for (const name of ["formaction", "href"]) {
            const value = focused.getAttribute(name);
            if (value) {
                return candidates.find((one) => one.getAttribute(name) === value);
            }
        }
        const same = candidates[index];
        return same && same.tagName === focused.tagName ? same : null;
    }

    function show(answer) {
        Object.assign(parts, answer.parts);
        token = answer.token;
        for (const place of places) {
            const names = place.dataset.jqParts.split(" ");
            put(place, names.map((name) => parts[name] || "").join(""));
        }
        if (answer.status !== status) {
            status = answer.status;
            said.textContent = answer.said;
        }
        if (answer.is_over) {
            end("");
        }
    }

    function end(words) {
        isOver = true;
        trouble.textContent = words;
        if (document.activeElement === pause) {
            places[0].focus();
        }
        pause.hidden = true;
    }

    async function look() {
        timer = null;
        asking = true;
        try {
            const address = new URL(page.dataset.jqLive, document.baseURI);
            address.searchParams.set("token", token);
            const answer = await fetch(address, {
                cache: "no-store",
                credentials: "same-origin",
                redirect: "manual",
                signal: AbortSignal.timeout(PATIENCE),
            });
            if (answer.status === 200) {
                show(await answer.json());
                wait = EVERY;
                trouble.textContent = isOver ? trouble.textContent : "";
            } else if (answer.status === 404) {
                end((await answer.json()).gone);
            } else if (answer.type === "opaqueredirect" || answer.status === 403) {
                // The user was signed out, or lost the permission.
                end(page.dataset.jqOut);
            } else {
                throw new Error(String(answer.status));
            }
        } catch {
            wait = Math.min(wait * 2, SELDOM);
            trouble.textContent = page.dataset.jqSilent;
        }
        asking = false;
        later();
    }

    function later() {
        clearTimeout(timer);
        const paused = pause.getAttribute("aria-pressed") === "true";
        timer = isOver || asking || paused || document.hidden ? null : setTimeout(look, wait);
    }

    pause.addEventListener("click", () => {
        pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") !== "true"));
        later();
    });
    document.addEventListener("visibilitychange", () => {
        wait = EVERY;
        later();
    });
    later();
})();
