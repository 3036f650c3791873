// Tables in <div class="sortable">: a click on a title sorts the rows by that column, and another
// click reverses them. Rows without a number come last.

function cellValue(row, column) {
  const text = row.cells[column].textContent.trim();
  const value = Number.parseFloat(text);
  return Number.isNaN(value) ? text : value;
}

function compareCells(a, b) {
  const areNumbers = typeof a === "number" && typeof b === "number";
  if (areNumbers) return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a.localeCompare(b);
}

function sortRows(title) {
  const body = title.closest("table").tBodies[0];
  const column = title.cellIndex;
  const isReversed = title.getAttribute("aria-sort") === "ascending";
  const rows = [...body.rows].sort((one, other) =>
    compareCells(cellValue(one, column), cellValue(other, column)));
  if (isReversed) rows.reverse();
  body.append(...rows);
  for (const other of title.parentNode.cells) other.removeAttribute("aria-sort");
  title.setAttribute("aria-sort", isReversed ? "descending" : "ascending");
}

for (const title of document.querySelectorAll(".sortable th")) {
  title.tabIndex = 0;
  title.addEventListener("click", () => sortRows(title));
  title.addEventListener("keydown", (event) => {
    if (event.key === "Enter") sortRows(title);
  });
}
