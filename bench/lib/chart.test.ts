import { describe, expect, it } from 'vitest'
import { attainment, chartOf } from './chart.ts'
import type { Figure } from './figure.ts'
import { growthOfAll } from './growth.ts'
import { aSuiteReport } from './report.fixture.ts'

const rate: Figure = { name: 'creates <256>', unit: '/s', value: 600, target: { valueMin: 300 } }
const share: Figure = { name: 'a list', unit: 'ms', value: 40, limit: { value: 10, of: 'the echo' } }
const points = [250, 1_000, 4_000].map((size) => ({ size, ms: size / 2 }))

describe('a chart', () => {
  it('measures figures by their targets: 1 is met exactly', () => {
    expect(attainment(rate)).toBe(2)
    expect(attainment({ ...rate, target: { valueMax: 1_200 } })).toBe(2)
    expect(attainment({ ...share, target: { ratioMin: 0.5 } })).toBe(0.5)
    expect(attainment(share)).toBeUndefined()
  })

  it('has a bar for each target and each limit, good or bad by colour', () => {
    const svg = chartOf(aSuiteReport('api', [rate, share, { ...rate, name: 'slow', value: 100 }]))
    expect(svg.match(/<rect class="good"/g)).toHaveLength(1)
    expect(svg.match(/<rect class="bad"/g)).toHaveLength(1)
    expect(svg.match(/<rect class="plain"/g)).toHaveLength(1)
    expect(svg).toContain('600/s, ≥ 300/s')
    expect(svg).toContain('25 % of 10 ms')
  })

  it('ends bars that do not fit in an arrow', () => {
    const bars = (value: number) => chartOf(aSuiteReport('api', [{ ...rate, value }]))
    expect(bars(10_000)).toContain('<path class="good"')
    expect(bars(600)).not.toContain('<path class="good"')
  })

  it('plots each growth beside what would be linear', () => {
    const svg = chartOf(aSuiteReport('api', [growthOfAll('lists', { of: 'claims', points })]))
    expect(svg).toContain('size^1.00, ≤ 1.10')
    expect(svg.match(/<circle/g)).toHaveLength(3)
    expect(/class="curve" d="([^"]+)"/.exec(svg)?.[1]).toBe(/class="ideal" d="([^"]+)"/.exec(svg)?.[1])
    expect(svg).toContain('>4,000</text>')
  })

  it('follows light and dark pages and lets no name break out', () => {
    const svg = chartOf(aSuiteReport('api', [rate]))
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg).toContain('creates &lt;256&gt;')
    expect(svg).not.toContain('<256>')
  })
})
