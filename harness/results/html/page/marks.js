// How lines are told apart: by colour, by the shape of their points and by their dashes, each enough by itself.

const kShapes = ['circle', 'rect', 'triangle', 'rectRot', 'star', 'crossRot', 'cross', 'rectRounded'];
const kDashes = [[], [7, 3], [2, 2], [10, 3, 2, 3], [4, 4], [1, 3], [12, 4], [6, 2, 2, 2]];

const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const markOf = (index) => ({
  colour: cssColour(`--series-${index % 8}`),
  shape: kShapes[index % kShapes.length],
  dash: kDashes[index % kDashes.length],
});

// The same shapes as Chart.js draws, 12 units wide, for the legend.
const kPaths = {
  circle: 'M8 12a4 4 0 1 0 8 0a4 4 0 1 0-8 0z', rect: 'M8 8h8v8h-8z', triangle: 'M12 7.5l4.5 8h-9z',
  rectRot: 'M12 7l5 5-5 5-5-5z', star: 'M12 7v10M7 12h10M8.5 8.5l7 7M15.5 8.5l-7 7', crossRot: 'M8 8l8 8M16 8l-8 8',
  cross: 'M12 7v10M7 12h10', rectRounded: 'M10 8h4a2 2 0 0 1 2 2v4a2 2 0 0 1-2 2h-4a2 2 0 0 1-2-2v-4a2 2 0 0 1 2-2z',
};

function markPicture(mark) {
  const space = 'http://www.w3.org/2000/svg';  // a name, not an address
  const svg = document.createElementNS(space, 'svg');
  const set = (node, attributes) => Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  set(svg, {viewBox: '0 0 24 24', width: 24, height: 24, 'aria-hidden': 'true'});
  const line = document.createElementNS(space, 'line');
  set(line, {x1: 0, x2: 24, y1: 12, y2: 12, stroke: mark.colour, 'stroke-width': 2, 'stroke-dasharray': mark.dash.join(' ')});
  const path = document.createElementNS(space, 'path');
  set(path, {d: kPaths[mark.shape], fill: mark.colour, stroke: mark.colour, 'stroke-width': 1.6});
  svg.append(line, path);
  return svg;
}
