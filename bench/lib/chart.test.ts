// Tests the charts: their bars, plots and text.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { computeAttainment, drawChart } from './chart.ts'
import type { Figure } from './figure.ts'
import { toTotalGrowthFigure } from './growth.ts'
import { aSuiteReport } from './report.fixture.ts'
import type { Report } from './report.ts'
import { lineHeight, textWidth } from './svg.ts'

const rate: Figure = { name: 'creates <256>', unit: '/s', value: 600, target: { valueMin: 300 } }
const share: Figure = { name: 'a list', unit: 'ms', value: 40, limit: { value: 10, of: 'the echo' } }
const points = [250, 1_000, 4_000].map((size) => ({ size, ms: size / 2 }))

describe('a chart', () => {
  it('compares a figure with its target: 2 means twice as good as the target, and 0.5 half as good', () => {
    expect(computeAttainment(rate)).toBe(2)
    expect(computeAttainment({ ...rate, target: { valueMax: 1_200 } })).toBe(2)
    expect(computeAttainment({ ...share, target: { ratioMin: 0.5 } })).toBe(0.5)
    expect(computeAttainment(share)).toBeUndefined()
  })

  it('has a bar for each target and each limit, coloured by whether the target is met', () => {
    const svg = drawChart(aSuiteReport('api', [rate, share, { ...rate, name: 'slow', value: 100 }]))
    expect(svg.match(/<rect class="good"/g)).toHaveLength(1)
    expect(svg.match(/<rect class="bad"/g)).toHaveLength(1)
    expect(svg.match(/<rect class="plain"/g)).toHaveLength(1)
    expect(svg).toContain('600/s, target ≥ 300/s')
    expect(svg).toContain('25 % of 10 ms')
  })

  it('draws an arrow at the end of bars that do not fit', () => {
    const bars = (value: number) => drawChart(aSuiteReport('api', [{ ...rate, value }]))
    expect(bars(10_000)).toContain('<path class="good"')
    expect(bars(600)).not.toContain('<path class="good"')
  })

  it('plots each growth with a dashed line for the limit', () => {
    const svg = drawChart(aSuiteReport('api', [toTotalGrowthFigure('lists', { of: 'claims', points })]))
    expect(svg).toContain('size^1.00, target ≤ 1.10')
    expect(svg.match(/<circle/g)).toHaveLength(3)
    expect(/class="curve" d="([^"]+)"/.exec(svg)?.[1]).toBe(/class="ideal" d="([^"]+)"/.exec(svg)?.[1])
    expect(svg).toContain('>4,000</text>')
  })

  it('supports light and dark mode, and escapes names', () => {
    const svg = drawChart(aSuiteReport('api', [rate]))
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg).toContain('creates &lt;256&gt;')
    expect(svg).not.toContain('<256>')
  })
})

interface Box {
  readonly text: string
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** Returns the estimated box of every text, in the coordinates of the canvas. */
function textBoxes(svg: string): Box[] {
  const boxes: Box[] = []
  let origin = { x: 0, y: 0 }
  const elements =
    /<g transform="translate\((\S+) (\S+)\)">|<\/g>|<text class="(\w+)" x="(\S+)" y="(\S+)"(?: text-anchor="(\w+)")?>([^<]*)</g
  for (const [element, dx, dy, textClass = '', x, y, anchor, escapedText = ''] of svg.matchAll(elements)) {
    if (element === '</g>') origin = { x: 0, y: 0 }
    else if (dx !== undefined) origin = { x: Number(dx), y: Number(dy) }
    else {
      const text = escapedText.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
      const width = textWidth(text, textClass)
      const left = origin.x + Number(x) - (anchor === 'end' ? width : anchor === 'middle' ? width / 2 : 0)
      const bottom = origin.y + Number(y) + 3
      boxes.push({ text, left, right: left + width, bottom, top: bottom - lineHeight(textClass) })
    }
  }
  return boxes
}

function expectReadable(svg: string): void {
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!.map(Number)
  const boxes = textBoxes(svg)
  expect(boxes.length).toBe(svg.match(/<text /g)?.length)
  for (const [index, box] of boxes.entries()) {
    const isInside = box.left >= 0 && box.top >= 0 && box.right <= width! && box.bottom <= height!
    expect(isInside, `"${box.text}" is outside the canvas`).toBe(true)
    for (const otherBox of boxes.slice(index + 1)) {
      const isApart =
        box.right <= otherBox.left ||
        otherBox.right <= box.left ||
        box.bottom <= otherBox.top ||
        otherBox.bottom <= box.top
      expect(isApart, `"${box.text}" overlaps "${otherBox.text}"`).toBe(true)
    }
  }
}

describe('the text of a chart', () => {
  const results = new URL('../../docs/reference/performance/results.json', import.meta.url)
  const { suites } = JSON.parse(readFileSync(results, 'utf8')) as Report

  it.each(suites.map((suite) => [suite.suite, suite] as const))(
    'fits the canvas and does not overlap for the stored figures of %s',
    (_, suite) => expectReadable(drawChart(suite)),
  )

  it('fits and does not overlap for long names, and is not cut', () => {
    const longName =
      'a figure whose name is much longer than the column that a chart has for the names of its figures, p99'
    const growth = toTotalGrowthFigure(longName, { of: 'existing claims', points })
    const figures: Figure[] = [
      { ...share, name: longName, limit: { value: 10, of: longName }, peer: { value: 3, of: longName } },
      { ...rate, name: longName, value: 123_456_789, target: { valueMin: 100_000_000 } },
      ...Array.from({ length: 4 }, () => growth),
      toTotalGrowthFigure('close points', {
        of: 'claims',
        points: [10_000, 11_000, 12_000].map((size) => ({ size, ms: size })),
      }),
    ]
    const svg = drawChart(aSuiteReport('api', figures))
    expectReadable(svg)
    expect(svg).not.toContain('…')
  })
})
