// Suggests the next word in the search box, as a datalist alone completes only the whole text. "/" leads to the box.
"use strict";

(() => {
    const box = document.getElementById("searchbar");
    if (!box || !box.list) {
        return;
    }
    document.addEventListener("keydown", (event) => {
        const isTyped = event.target.closest("input, textarea, select, [contenteditable]");
        if (event.key === "/" && !isTyped && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            box.focus();
            box.select();
        }
    });
    const offers = Array.from(box.list.options, (option) => [option, option.value]);
    box.addEventListener("input", () => {
        const before = box.value.replace(/\S*$/, "");
        for (const [option, word] of offers) {
            option.value = before + word;
        }
    });
})();
