// The charts of a section: choose a view and a field for x, then one panel for each problem shape.

const kPanelsAtFirst = 9;

class Charts {
  constructor(section, place) {
    this.section = section;
    this.place = place;
    this.views = viewsOf(section);
    this.xFields = xFields(section);
    this.hidden = new Set();
    this.charts = [];
    this.rows = section.rows;
    this.allPanels = false;
    this.straight = false;
    [this.view] = this.views;
    [this.x] = this.xFields;
    if (!this.view || !this.x) return;
    this.legend = element('div', {className: 'legend'});
    this.grid = element('div', {className: 'panels'});
    this.caption = element('p', {className: 'caption'});
    this.more = element('button', {className: 'more', type: 'button', hidden: true, onclick: () => {
      this.allPanels = true;
      this.draw();
    }});
    place.append(this.controls(), this.legend, this.grid, this.more, this.caption);
    // Many sections have many charts: each is drawn when it comes near.
    this.observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      this.observer.disconnect();
      this.draw();
    }, {rootMargin: '400px'});
    this.observer.observe(place);
  }

  controls() {
    const tabs = element('div', {className: 'tabs', role: 'group', ariaLabel: 'What the charts show'});
    for (const view of this.views) {
      tabs.append(element('button', {type: 'button', ariaPressed: String(view === this.view), onclick: (event) => {
        for (const tab of tabs.children) tab.ariaPressed = String(tab === event.currentTarget);
        this.view = view;
        this.draw();
      }}, view.name));
    }
    const choice = element('select', {ariaLabel: 'Field along x', onchange: () => {
      this.x = this.xFields[choice.selectedIndex];
      this.draw();
    }}, ...this.xFields.map((field) => element('option', {}, field.label)));
    this.xChoice = element('label', {className: 'choice'}, 'x ', choice);
    const straight = element('input', {type: 'checkbox', onchange: () => {
      this.straight = straight.checked;
      this.draw();
    }});
    return element('div', {className: 'controls'}, tabs, this.xChoice,
                   element('label', {className: 'choice'}, straight, ' linear y'));
  }

  // Shows these rows from now on.
  filter(rows) {
    this.rows = rows;
    if (this.drawn) this.draw();
  }

  draw() {
    if (!this.view || !this.x) return;
    this.drawn = true;
    this.charts.forEach((chart) => chart.destroy());
    this.charts = [];
    this.grid.replaceChildren();
    this.more.hidden = true;
    this.xChoice.hidden = Boolean(this.view.whole) || this.xFields.length < 2;
    this.caption.textContent = this.view.caption +
        (this.view.range ? ' Error bars: 95 % confidence interval, drawn where it is wider than the point.' : '');
    const layout = layoutOf(this.section, this.x);
    if (this.view.whole) this.drawWhole(layout);
    else this.drawPanels(layout);
    if (this.charts.length === 0) this.grid.append(element('p', {className: 'note'}, 'No row that is shown has this figure.'));
  }

  drawWhole(layout) {
    const {datasets, axis, series} = wholeDatasets(this.view, this.section, layout, this.rows, this.hidden);
    this.drawLegend(series);
    const values = datasets.flatMap((dataset) => dataset.data.map((point) => point.y));
    if (values.length === 0) return;
    const describe = ({row, x}) => (row ? labelOf(row, this.section.varying) : axis.shown(x));
    this.grid.className = 'panels single';
    this.addPanel('', datasets, xScaleOf(axis, true), yScaleOf(this.view, values, this.straight), describe);
  }

  drawPanels(layout) {
    this.drawLegend(layout.series);
    const shown = new Set(this.rows.filter(hasFigure));
    const panels = layout.panels.map((panel) => ({...panel, rows: panel.rows.filter((row) => shown.has(row))}))
        .filter((panel) => panel.rows.some((row) => this.view.value(row) != null));
    const visible = this.allPanels ? panels : panels.slice(0, kPanelsAtFirst);
    const level = (row) => this.x.numeric && !(row.problem[this.x.name] > 0);
    const all = panels.flatMap((panel) => panel.rows);
    const levels = distinct(all.filter(level).map(layout.seriesOf));
    const alone = levels.every((label) => all.every((row) => layout.seriesOf(row) !== label || level(row)));
    const spread = all.some((row) => !level(row));
    const axis = xAxisOf(alone && spread ? all.filter((row) => !level(row)) : all, this.x);
    const drawn = visible.map((panel) => ({panel, datasets: panelDatasets(panel, layout, this.view, axis, this.hidden)}));
    const values = drawn.flatMap(({datasets}) => datasets.flatMap((dataset) => dataset.data.map((point) => point.y)));
    if (values.length === 0) return;
    this.grid.className = visible.length === 1 ? 'panels single' : 'panels';
    const describe = ({row, x}) => (row ? labelOf(row, this.section.varying) : `${axis.label} ${axis.names?.[x] ?? shownLength(x)}`);
    for (const {panel, datasets} of drawn)
      this.addPanel(panel.label, datasets, xScaleOf(axis, true), yScaleOf(this.view, values, this.straight), describe);
    this.more.hidden = visible.length === panels.length;
    this.more.textContent = `Show all ${panels.length} panels`;
  }

  addPanel(label, datasets, x, y, shownX) {
    const canvas = element('canvas', {role: 'img', ariaLabel: `${this.view.name}${label ? `, ${label}` : ''}; figures in the table`});
    this.grid.append(element('figure', {className: 'panel'}, element('figcaption', {}, label),
                             element('div', {className: 'plot'}, canvas)));
    this.charts.push(drawChart(canvas, {datasets, x, y, view: this.view, shownX}));
  }

  drawLegend(series) {
    this.legend.replaceChildren(...series.map((label, index) => element('button', {
      type: 'button', ariaPressed: String(!this.hidden.has(label)), title: 'Show or hide', onclick: () => {
        if (!this.hidden.delete(label)) this.hidden.add(label);
        this.draw();
      }}, markPicture(markOf(index)), label)));
  }
}
