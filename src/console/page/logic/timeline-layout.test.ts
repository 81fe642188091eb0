import { expect, it } from 'vitest'
import { layoutTimeline } from './timeline-layout.ts'

const at = (ms: number) => new Date(1_700_000_000_000 + ms).toISOString()
const call = (ms: number, durationMs: number, component = 'driver') => ({
  time: at(ms),
  durationMs,
  type: 'Call',
  action: 'CreateVolume',
  component,
})
const nameOf = ({ component }: { component?: string }) => component ?? ''

it('puts the entries of each component into one lane', () => {
  const layout = layoutTimeline([call(0, 10), call(20, 10, 'provisioner'), call(40, 10)], { nameOf })
  expect(layout?.lanes.map(({ name, bars }) => [name, bars.length])).toEqual([
    ['driver', 2],
    ['provisioner', 1],
  ])
  expect(layout?.shortenedPauses).toEqual([])
})

it('shortens a pause of a day, so that the seconds before and after it remain readable', () => {
  const layout = layoutTimeline([call(0, 500), call(86_400_000, 500)], { nameOf })!
  const [first, second] = layout.lanes[0]!.bars
  expect(layout.shortenedPauses).toHaveLength(1)
  expect(layout.shortenedPauses[0]!.durationMs).toBe(86_399_500)
  expect(first!.end - first!.start).toBeGreaterThan(0.4)
  expect(second!.end).toBeCloseTo(1)
})

it('maps times to increasing positions on the axis', () => {
  const layout = layoutTimeline([call(0, 5), call(10_000, 5), call(10_100, 5), call(900_000, 50)], { nameOf })!
  const positions = [0, 3, 5_000, 10_000, 10_102, 500_000, 900_000, 900_050].map((ms) =>
    layout.positionOf(1_700_000_000_000 + ms),
  )
  expect(positions).toEqual(positions.toSorted((a, b) => a - b))
  expect(positions[0]).toBe(0)
  expect(positions.at(-1)).toBeCloseTo(1)
})

it('returns no layout without entries', () => {
  expect(layoutTimeline([], { nameOf })).toBeUndefined()
})
