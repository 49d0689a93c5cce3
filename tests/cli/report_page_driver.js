// Runs in the page of report_page_test.sh as a reader would use it; what it finds goes into an element at the end.
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

readAlong().catch((error) => check(String(error), false)).finally(() => {
  document.body.append(Object.assign(document.createElement('pre'), {id: 'found', textContent: found.join('\n')}));
});
