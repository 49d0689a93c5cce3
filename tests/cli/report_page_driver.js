// Runs in the pages of report_page_test.sh as a reader would use them; what it finds goes into an element at the end.
const found = [];
const check = (what, holds) => found.push(`${holds ? 'ok' : 'FAILED'}: ${what}`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const lines = () => [...document.querySelectorAll('.rows tbody tr:not(.details)')].filter((line) => !line.hidden);
const header = (text) => [...document.querySelectorAll('thead th')].find((cell) => cell.textContent === text);
const column = (text) => lines().map((line) => line.cells[header(text).cellIndex]?.dataset.v).filter((v) => v !== undefined);
const inked = (canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);

function sorts(name, direction) {
  header(name).querySelector('button').click();
  const values = column(name).map(Number);
  check(`${name} sorts ${direction > 0 ? 'up' : 'down'}`, values.length > 1 && values.every((v, i) => i === 0 || direction * (v - values[i - 1]) >= 0));
  check(`${name} keeps rows without a figure below`, lines().at(-1).querySelector('.reason') !== null);
}

function search(text) {
  const field = document.querySelector('.filter input');
  field.value = text;
  field.dispatchEvent(new Event('input'));
  return lines().length;
}

async function everyViewDraws() {
  for (const tab of document.querySelectorAll('.tabs button')) {
    tab.click();
    const canvases = [...document.querySelectorAll('.panels canvas')];
    for (let tries = 0; tries < 20 && !canvases.every(inked); ++tries) await pause(100);  // the browser picks the frame
    check(`view ${tab.textContent} draws`, canvases.length > 0 && canvases.every(inked));
  }
}

// A page of two sweeps, as it is printed and read without colour.
async function printAlong() {
  await pause(500);
  check('each sweep has its section and a line in the overview', allCharts.length === 2 && document.querySelectorAll('.overview li a').length === 2);
  check('charts out of sight are not drawn yet', !allCharts[1].drawn);
  dispatchEvent(new Event('beforeprint'));
  check('all charts are drawn for paper, in light colours', allCharts.every((charts) => charts.drawn) &&
      document.documentElement.classList.contains('printing'));
  dispatchEvent(new Event('afterprint'));
  check('then the screen is as before', !document.documentElement.classList.contains('printing'));
  const names = [...document.querySelectorAll('.tabs button')].map((tab) => tab.textContent);
  for (const name of ['Arithmetic rate', 'Memory rate', 'Speed-up', 'Time', 'Memory', 'Roofline', 'Error against speed'])
    check(`there is a view ${name}`, names.includes(name));
  for (const charts of allCharts) {
    for (const tab of charts.place.querySelectorAll('.tabs button')) {
      tab.click();
      const lines = charts.charts.flatMap((chart) => [chart.data.datasets.filter((dataset) => dataset.pointRadius > 0)]);
      const apart = (mark) => lines.every((some) => new Set(some.map(mark)).size === new Set(some.map((one) => one.label)).size);
      check(`lines of ${tab.textContent} are told apart without colour`, lines.length > 0 && apart((one) => one.pointStyle) &&
          (charts.view.whole || apart((one) => String(one.borderDash))));
    }
  }
  const sweep = document.querySelectorAll('section .rows');
  check('a status is a sign and a word', [...document.querySelectorAll('.status')].every((one) => /^\S+ \w+/.test(one.textContent)));
  check('tables of both are there', sweep.length === 2);
}

async function readAlong() {
  await pause(500);
  check('all rows are there', lines().length === 12);
  check('labels became no markup', window.broken === undefined && document.querySelector('main img') === null);
  check('the question is shown as typed', document.querySelector('h2').textContent.includes('<' + '/script>'));
  sorts('time', 1);
  sorts('time', -1);
  check('a word filters', search('flash_sm80') === 4);
  check('a field filters', search('q_len=33 cpu.flash') === 2);
  check('the count follows', document.querySelector('.count').textContent === '2 of 12 rows');
  check('no word shows all', search('') === 12);
  const chip = [...document.querySelectorAll('.chips button')].find((one) => one.textContent.startsWith('unsupported'));
  chip.click();
  check('a status can be hidden', lines().length === 8);
  chip.click();
  await everyViewDraws();
  const before = allCharts[0].charts[0].data.datasets.length;
  document.querySelector('.legend button').click();
  check('the legend hides a line', allCharts[0].charts[0].data.datasets.length === before - 1);
  document.querySelector('.legend button').click();
  lines()[0].querySelector('.open').click();
  const details = document.querySelector('tr.details');
  check('a row opens', details !== null && details.textContent.includes('./inferometer run tiny.json --row'));
  check('a row says how to profile it', details.textContent.includes('./inferometer profile tiny.json --row'));
  details.querySelector('.copy').click();
  await pause(100);
  check('a command is copied', details.querySelector('.copy').textContent === 'Copied');
  check('nothing is wider than the window', document.documentElement.scrollWidth <= innerWidth);
}

(allCharts.length === 2 ? printAlong() : readAlong()).catch((error) => check(String(error), false)).finally(() => {
  found.push(`width ${innerWidth}`);
  const text = found.join('\n');
  document.body.append(Object.assign(document.createElement('pre'), {id: 'found', textContent: text}));
  if (parent !== window) parent.postMessage(text, '*');  // in the frame of a narrow screen
});
