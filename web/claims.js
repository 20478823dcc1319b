// The kept verdicts of `brakelight reproduce`, read from the book's pages of them.

/**
 * Returns the experiments of the pages in `docs/reproduction` with their claims and their files.
 * @param {string} markdown
 * @param {Map<string, string>} files the file of each experiment, by its id
 */
export function claims(markdown, files) {
  const experiments = [];
  let current;
  let columns = [];
  for (const line of markdown.split("\n")) {
    const heading = /^### ([A-Z][\w-]*): (.*)$/.exec(line);
    if (heading) {
      const file = files.get(heading[1]);
      if (!file) throw new Error(`no file has the experiment ${heading[1]}`);
      current = { id: heading[1], file, title: plain(heading[2]), claims: [] };
      experiments.push(current);
      continue;
    }
    if (/^#{1,2} /.test(line)) current = undefined;
    if (!current || !line.startsWith("| ")) continue;
    const cells = line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => plain(cell.trim().replaceAll("\\|", "|")));
    if (cells[0] === "id") {
      columns = cells;
      continue;
    }
    if (cells.length !== columns.length) throw new Error(`not a row of ${columns.length}: ${line}`);
    // Some tables have a column more: what another simulator measured.
    const { id, claim, paper, measured, verdict, note } = Object.fromEntries(columns.map((name, index) => [name, cells[index]]));
    current.claims.push({ id, claim, paper, measured, verdict, note });
  }
  if (experiments.length === 0) throw new Error("no claims were found");
  return experiments;
}

/** Markdown's emphasis and links, as plain text. */
function plain(text) {
  return text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[*`]/g, "");
}
