// Goes on with a search of jobs that wait for somebody until all are searched, and links to what it finds. If the page
// has no results, it leads to the first ones.
"use strict";

(() => {
    const PATIENCE = 60000;

    const bar = document.getElementById("jq-further");
    if (!bar) {
        return;
    }
    const said = bar.querySelector("[role=status]");
    const links = bar.querySelector("ul");
    const isEmpty = !document.getElementById("result_list");

    function shown() {
        return new Promise((resolve) => {
            if (!document.hidden) {
                resolve();
            } else {
                document.addEventListener("visibilitychange", () => resolve(shown()), {once: true});
            }
        });
    }

    async function part(query) {
        const address = new URL(bar.dataset.jqAddress + query, window.location.href);
        const answer = await fetch(address, {redirect: "manual", signal: AbortSignal.timeout(PATIENCE)});
        if (!answer.ok) {
            throw new Error(String(answer.status));
        }
        return answer.json();
    }

    function link(text, query) {
        const item = document.createElement("li");
        const target = document.createElement("a");
        target.href = query;
        target.textContent = text;
        item.append(target);
        links.append(item);
    }

    async function search(first) {
        for (let query = first; query;) {
            await shown();
            const found = await part(query);
            if (found.found && isEmpty) {
                window.location.replace(query);
                return;
            }
            if (found.found) {
                link(found.found, query);
            }
            said.textContent = found.said;
            query = found.next;
        }
        document.getElementById("jq-note").hidden = true;
    }

    bar.hidden = false;
    // Without an answer, the note with its link is still there.
    search(bar.dataset.jqQuery).catch(() => {
        bar.hidden = !links.childElementCount;
        said.textContent = "";
    });
})();
