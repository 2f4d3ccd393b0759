// Shows the next slots of a rule while somebody types it.
"use strict";

(() => {
    const preview = document.getElementById("jq-preview");
    const rule = document.getElementById("id_rule");
    const zone = document.getElementById("id_zone");
    if (!preview || !rule || !zone) {
        return;
    }
    let waiting = 0;
    let asked = 0;
    const show = async () => {
        asked += 1;
        const mine = asked;
        const query = new URLSearchParams({ rule: rule.value, zone: zone.value });
        try {
            const answer = await fetch(`${preview.dataset.jqAddress}?${query}`, { credentials: "same-origin" });
            if (answer.ok && mine === asked) {
                preview.innerHTML = (await answer.json()).html;
            }
        } catch {
            preview.textContent = "";
        }
    };
    const soon = () => {
        clearTimeout(waiting);
        waiting = setTimeout(show, 200);
    };
    rule.addEventListener("input", soon);
    zone.addEventListener("input", soon);
    if (rule.value) {
        show();
    }
})();
