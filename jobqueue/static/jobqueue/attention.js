// Shows beside the app's name how many problems need attention. The page itself doesn't wait for the count.
"use strict";

(() => {
    // The body of a page of the app has its class too.
    const links = document.querySelectorAll(
        ".module.app-jobqueue caption a.section, .breadcrumbs a[href$='/jobqueue/']",
    );
    if (!links.length) {
        return;
    }
    const app = links[0].getAttribute("href");

    function show(answer) {
        for (const link of answer.count ? links : []) {
            const badge = document.createElement("a");
            badge.className = "jq-badge";
            badge.href = `${app}dashboard/`;
            badge.title = answer.text;
            badge.setAttribute("aria-label", answer.text);
            badge.textContent = answer.count;
            link.after(" ", badge);
        }
    }

    // Without a permission, a session or a server there is no badge.
    fetch(`${app}dashboard/attention/`, {headers: {Accept: "application/json"}})
        .then((response) => (response.ok && !response.redirected ? response.json() : {count: 0}))
        .then(show)
        .catch(() => {});
})();
