// Renders a flame graph as a self-contained page. The width of a bar is its time; the bars on it are the functions it
// called. A click zooms, a search highlights, and the table below works without scripts.
import { type Flame, findHottestFunctions, type HotFunction } from './flame-graph.ts'
import { escapeXml } from './svg.ts'

/** Narrower bars are invisible and would make the page megabytes large. */
const SHARE_MIN = 0.0005
const HOT_FUNCTIONS = 40

/** Times in microseconds; children are the called functions. */
type FlameData = [name: string, total: number, self: number, children: FlameData[]]

export function renderFlamePage(title: string, root: Flame): string {
  const data = JSON.stringify(toFlameData(root, root.total * SHARE_MIN)).replaceAll('<', '\\u003c')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeXml(title)}</title>
<style>${STYLE}</style>
<h1>${escapeXml(title)}</h1>
<p>${seconds(root.total)} of CPU time on the main threads, without idle time. Click a bar to zoom in, the lowest to zoom out.
<label>Search <input id="search" type="search"></label> <output id="found"></output></p>
<div id="graph"></div>
<h2>Functions by their own time</h2>
<table><tr><th>function<th>self<th>total</tr>
${findHottestFunctions(root, HOT_FUNCTIONS)
  .map((hot) => hotRow(hot, root.total))
  .join('\n')}
</table>
<script>const root = ${data}
${SCRIPT}</script>
</html>
`
}

const hotRow = ({ name, self, total }: HotFunction, totalMicros: number): string =>
  `<tr><td>${escapeXml(name)}<td>${percent(self, totalMicros)}<td>${percent(total, totalMicros)}</tr>`

const percent = (part: number, totalMicros: number): string => `${((100 * part) / (totalMicros || 1)).toFixed(1)} %`
const seconds = (microseconds: number): string => `${(microseconds / 1e6).toFixed(1)} s`

const toFlameData = ({ name, total, self, children }: Flame, totalMin: number): FlameData => [
  name,
  total,
  self,
  [...children.values()]
    .filter((child) => child.total >= totalMin && child.total > 0)
    .sort((a, b) => b.total - a.total)
    .map((child) => toFlameData(child, totalMin)),
]

const STYLE = `body{font:14px system-ui,sans-serif;margin:16px;background:#fff;color:#1f2328}
#graph{position:relative;overflow:hidden}
#graph button{position:absolute;height:18px;padding:0 3px;border:1px solid #fff;border-radius:2px;overflow:hidden;
font:11px/16px ui-monospace,monospace;text-align:left;white-space:nowrap;color:#1f2328;cursor:pointer}
#graph button.found{outline:2px solid #8250df;z-index:1}
table{border-collapse:collapse}td,th{padding:2px 12px 2px 0;text-align:right}td:first-child,th:first-child{text-align:left;
font-family:ui-monospace,monospace;font-size:12px}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}#graph button{border-color:#0d1117}}`

const SCRIPT = `const graph = document.getElementById('graph')
const search = document.getElementById('search')
const colour = (name) => {
  let hash = 0
  for (const character of name) hash = (hash * 31 + character.charCodeAt(0)) >>> 0
  return name.startsWith('(') ? 'hsl(210 10% 75%)' : 'hsl(' + (15 + hash % 40) + ' 85% ' + (62 + hash % 14) + '%)'
}
const depthOf = ([, , , children]) => 1 + Math.max(0, ...children.map(depthOf))
function show(path) {
  graph.textContent = ''
  const focus = path[path.length - 1]
  const height = (path.length - 1 + depthOf(focus)) * 18
  graph.style.height = height + 'px'
  const bar = (node, left, width, level, target) => {
    const [name, total, self] = node
    const button = document.createElement('button')
    button.textContent = name
    button.title = name + '\\n' + (total / 1e6).toFixed(2) + ' s, ' + (100 * total / root[1]).toFixed(1) +
      ' % of all; self ' + (100 * self / root[1]).toFixed(1) + ' %'
    button.style.cssText = 'left:' + left + '%;width:' + width + '%;top:' + (height - (level + 1) * 18) +
      'px;background:' + colour(name)
    button.onclick = () => show(target)
    graph.append(button)
  }
  path.slice(0, -1).forEach((node, level) => bar(node, 0, 100, level, path.slice(0, level + 1)))
  const drawNode = (node, left, width, level, callers) => {
    const nodePath = [...callers, node]
    bar(node, left, width, level, nodePath)
    let from = left
    for (const child of node[3]) {
      const share = width * child[1] / node[1]
      if (share > 0.08) drawNode(child, from, share, level + 1, nodePath)
      from += share
    }
  }
  drawNode(focus, 0, 100, path.length - 1, path.slice(0, -1))
  mark()
}
function mark() {
  const query = search.value.toLowerCase()
  let found = 0
  for (const button of graph.children) {
    const isFound = query !== '' && button.textContent.toLowerCase().includes(query)
    button.classList.toggle('found', isFound)
    if (isFound) found++
  }
  document.getElementById('found').textContent = query === '' ? '' : 'bars found: ' + found
}
search.oninput = mark
show([root])
`
