/* A box above each long table: rows that do not hold all of its words are hidden. */
"use strict";

const LONG = 40;

document.querySelectorAll(".bd-article table").forEach((table) => {
  if (!table.tBodies.length || table.tBodies[0].rows.length < LONG) return;
  const rows = [...table.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
  const box = document.createElement("input");
  box.type = "search";
  box.className = "table-filter";
  box.placeholder = `Filter ${rows.length} rows`;
  box.setAttribute("aria-label", "Show the rows that contain these words");
  const count = document.createElement("span");
  count.className = "table-filter-count";
  count.setAttribute("aria-live", "polite");
  const line = document.createElement("div");
  line.className = "table-filter-line";
  line.append(box, count);
  (table.closest(".pst-scrollable-table-container") ?? table).before(line);

  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = words.length ? `${shown} of ${rows.length}` : "";
    const address = new URL(window.location);
    words.length ? address.searchParams.set("filter", words.join(" ")) : address.searchParams.delete("filter");
    history.replaceState(null, "", address);
  };
  box.addEventListener("input", show);
  // A link may bring its words along: stan_names.html?filter=normal
  const words = new URLSearchParams(window.location.search).get("filter");
  if (words) {
    box.value = words;
    show();
  }
});
