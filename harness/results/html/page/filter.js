// Which rows are shown: words that must all occur, `field=value` among them, and chips for statuses and variants.

function matchesWord(word, row, text) {
  const [, name, value] = word.match(/^([a-z0-9_]+)=(.*)$/) ?? [];
  if (name in row.problem) return fieldText(row, name).toLowerCase() === value;
  return text.includes(word);
}

class Filter {
  constructor(section, place, onChange) {
    this.off = new Set();  // chips that are not pressed
    this.onChange = onChange;
    this.words = [];
    const search = element('input', {type: 'search', placeholder: 'Filter rows: flash q_len=4096', ariaLabel: 'Filter rows',
                                     oninput: () => {
                                       this.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
                                       this.changed();
                                     }});
    this.count = element('output', {className: 'count'});
    place.append(search, this.chips(section, (row) => row.status, 'Statuses'),
                 this.chips(section, (row) => row.variant, 'Variants'), this.count);
    place.hidden = false;
  }

  chips(section, valueOf, label) {
    const group = element('div', {className: 'chips', role: 'group', ariaLabel: label});
    for (const value of distinct(section.rows.map(valueOf))) {
      const count = section.rows.filter((row) => valueOf(row) === value).length;
      const chip = element('button', {type: 'button', ariaPressed: 'true', onclick: () => {
        if (!this.off.delete(value)) this.off.add(value);
        chip.ariaPressed = String(!this.off.has(value));
        this.changed();
      }}, value, element('small', {}, String(count)));
      group.append(chip);
    }
    return group;
  }

  changed() {
    this.onChange((row, line) => !this.off.has(row.status) && !this.off.has(row.variant) &&
        this.words.every((word) => matchesWord(word, row, line.textContent.toLowerCase())));
  }

  show(shown, all) {
    this.count.textContent = shown === all ? `${all} rows` : `${shown} of ${all} rows`;
  }
}
