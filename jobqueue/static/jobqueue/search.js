// Suggests the next word in the search box. A datalist alone completes only the whole text.
"use strict";

(() => {
    const box = document.getElementById("searchbar");
    if (!box || !box.list) {
        return;
    }
    const offers = Array.from(box.list.options, (option) => [option, option.value]);
    box.addEventListener("input", () => {
        const before = box.value.replace(/\S*$/, "");
        for (const [option, word] of offers) {
            option.value = before + word;
        }
    });
})();
