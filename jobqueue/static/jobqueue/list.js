// Keeps the rows of an open list up to date. Rows stay where they are, and keep their checkboxes: if the list has
// other rows now, it says so and leaves it to the reader to load them.
"use strict";

(() => {
    const LONGEST_WAIT = 60000;
    const PATIENCE = 20000;

    const bar = document.getElementById("jq-list-live");
    const table = document.getElementById("result_list");
    if (!bar || !table) {
        return;
    }
    const pause = bar.querySelector("button");
    const news = bar.querySelector("[role=status]");
    const reload = bar.querySelector("a");
    let wait = bar.dataset.jqEvery * 1000;
    let timer = null;
    let isOver = false;

    function plan() {
        clearTimeout(timer);
        const paused = pause.getAttribute("aria-pressed") === "true";
        timer = isOver || paused || document.hidden ? null : setTimeout(ask, wait);
    }

    async function ask() {
        try {
            const address = new URL(bar.dataset.jqAddress, window.location.href);
            const answer = await fetch(address, {redirect: "manual", signal: AbortSignal.timeout(PATIENCE)});
            if (answer.ok) {
                show((await answer.json()).rows);
                wait = bar.dataset.jqEvery * 1000;
            } else if (answer.type === "opaqueredirect" || answer.status === 403) {
                isOver = true;
                tell(bar.dataset.jqOut);
            } else {
                throw new Error(String(answer.status));
            }
        } catch {
            wait = Math.min(wait * 2, LONGEST_WAIT);
        }
        plan();
    }

    function show(rows) {
        const shown = new Map(Array.from(table.tBodies[0].rows, (row) => [idOf(row), row]));
        for (const [id, cells] of rows) {
            const row = shown.get(id);
            if (row) {
                renew(row, cells);
            }
        }
        const isSame = rows.length === shown.size && rows.every(([id]) => shown.has(id));
        reload.hidden = isSame;
        tell(isSame ? "" : bar.dataset.jqChanged);
    }

    function idOf(row) {
        const id = row.querySelector(".jq-id");
        return id ? id.textContent : "";
    }

    function renew(row, cells) {
        const template = document.createElement("template");
        template.innerHTML = `<table><tbody><tr>${cells}</tr></tbody></table>`;
        Array.from(template.content.querySelector("tr").cells).forEach((fresh, place) => {
            const old = row.cells[place];
            // A checkbox belongs to the reader, and so does what has the focus.
            const isReaders = !old || old.classList.contains("action-checkbox") || old.contains(document.activeElement);
            if (!isReaders && old.outerHTML !== fresh.outerHTML) {
                old.replaceWith(fresh);
            }
        });
    }

    // Screen readers announce each change of this text.
    function tell(text) {
        if (news.textContent !== text) {
            news.textContent = text;
        }
    }

    pause.addEventListener("click", () => {
        pause.setAttribute("aria-pressed", String(pause.getAttribute("aria-pressed") !== "true"));
        plan();
    });
    document.addEventListener("visibilitychange", plan);
    bar.hidden = false;
    plan();
})();
