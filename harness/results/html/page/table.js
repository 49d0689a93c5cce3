// The table of a section: sorted by any column, filtered by words, statuses and variants.

class RowTable {
  constructor(section, table) {
    this.rows = new Map(section.rows.map((row) => [row.id, row]));
    this.body = table.tBodies[0];
    this.lines = [...this.body.rows];
    this.columns = [...table.tHead.rows[0].cells];
    this.columns.forEach((cell, i) => {
      const button = element('button', {type: 'button', onclick: () => this.sort(i)}, cell.textContent);
      cell.replaceChildren(button);
    });
    for (const line of this.lines) {
      const button = element('button', {type: 'button', className: 'open', ariaExpanded: 'false', ariaLabel: 'Details',
                                        onclick: () => this.toggle(line, button)}, '+');
      line.cells[0].prepend(button);
    }
  }

  toggle(line, button) {
    const open = button.ariaExpanded === 'true';
    button.ariaExpanded = String(!open);
    button.textContent = open ? '+' : '−';
    if (open) return line.nextElementSibling.remove();
    const cell = element('td', {colSpan: this.columns.length}, rowDetails(this.rows.get(line.dataset.id)));
    line.after(element('tr', {className: 'details'}, cell));
  }

  closeAll() {
    for (const button of this.body.querySelectorAll('.open[aria-expanded="true"]')) button.click();
  }

  // Up, then down; rows without a figure in this column stay below in both.
  sort(column) {
    this.closeAll();
    const header = this.columns[column];
    const direction = header.ariaSort === 'ascending' ? -1 : 1;
    for (const cell of this.columns) cell.removeAttribute('aria-sort');
    header.ariaSort = direction > 0 ? 'ascending' : 'descending';
    const keyOf = (line) => {
      const cell = line.cells[column];
      if (!cell || cell.colSpan > 1 || cell.textContent === '-') return null;
      if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
      return cell.classList.contains('n') ? null : cell.textContent;
    };
    const compare = (a, b) => (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b)));
    const keyed = this.lines.map((line) => ({line, key: keyOf(line)}));
    keyed.sort((a, b) => (a.key === null) - (b.key === null) || (a.key === null ? 0 : direction * compare(a.key, b.key)));
    this.lines = keyed.map(({line}) => line);
    this.body.append(...this.lines);
  }

  // Returns the rows that are shown.
  filter(wanted) {
    this.closeAll();
    const shown = [];
    for (const line of this.lines) {
      const row = this.rows.get(line.dataset.id);
      line.hidden = !wanted(row, line);
      if (!line.hidden) shown.push(row);
    }
    return shown;
  }
}
