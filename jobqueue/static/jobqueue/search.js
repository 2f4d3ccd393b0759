// Has the search box offer the next word: a datalist by itself completes the whole box alone.
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
