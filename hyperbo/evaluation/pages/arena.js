"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      // A row that is not ranked has one cell for all numbers.
      const key = (row) => {
        const cell = row.cells[Math.min(column, row.cells.length - 1)];
        return cell.dataset.value ?? cell.textContent;
      };
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const [p, q] = [Number(x), Number(y)];
        // What has no number, as a method that does not apply, stays below.
        if (x === "" || y === "") return x === y ? 0 : x === "" ? 1 : -1;
        const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
        return down ? -order : order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
