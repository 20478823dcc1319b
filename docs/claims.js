// Filters the tables of claims. Without it the pages are whole, and their tables can be read.
(() => {
  const names = (table) => [...table.querySelectorAll("thead th")].map((cell) => cell.textContent);
  const tables = [...document.querySelectorAll("main table")].filter((table) => {
    return names(table)[0] === "id" && names(table).includes("verdict");
  });
  if (tables.length === 0) return;

  const verdicts = ["holds", "fails", "refuted", "needs-recordings", "not-checkable"];
  const rows = tables.flatMap((table) => [...table.querySelectorAll("tbody tr")].map((row) => {
    const cell = row.cells[names(table).indexOf("verdict")];
    const verdict = cell.textContent;
    cell.className = `verdict ${verdict}`;
    return { row, table, verdict, text: row.textContent.toLowerCase() };
  }));

  // What belongs to a table: its heading, and what stands between.
  const parts = new Map(tables.map((table) => {
    const whole = table.closest(".table-wrapper") ?? table;
    const part = [whole];
    for (let above = whole.previousElementSibling; above; above = above.previousElementSibling) {
      part.push(above);
      if (/^H[1-6]$/.test(above.tagName)) break;
    }
    return [table, part];
  }));

  const bar = document.createElement("form");
  bar.className = "claims-filter";
  bar.innerHTML = '<label>Search <input type="search" placeholder="words, an id"></label><fieldset><legend>Verdicts</legend></fieldset><output></output>';
  const [search, boxes, shown] = [bar.querySelector("input"), bar.querySelector("fieldset"), bar.querySelector("output")];
  for (const verdict of verdicts) {
    const count = rows.filter((row) => row.verdict === verdict).length;
    if (count === 0) continue;
    const label = document.createElement("label");
    label.innerHTML = `<input type="checkbox" checked value="${verdict}"> ${verdict} (${count})`;
    boxes.append(label);
  }
  bar.addEventListener("submit", (event) => event.preventDefault());
  bar.addEventListener("input", () => filter());
  const first = parts.get(tables[0]);
  first[first.length - 1].before(bar);

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set([...boxes.querySelectorAll("input:checked")].map((box) => box.value));
    const full = new Set();
    let count = 0;
    for (const { row, table, verdict, text } of rows) {
      const fits = wanted.has(verdict) && words.every((word) => text.includes(word));
      row.hidden = !fits;
      if (fits) {
        full.add(table);
        count += 1;
      }
    }
    for (const [table, part] of parts) for (const element of part) element.hidden = !full.has(table);
    shown.textContent = `${count} of ${rows.length} claims`;
  }
  filter();
})();
