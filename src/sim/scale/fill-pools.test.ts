// Prints the figures next to those that the authors of the KEP published for csi-driver-host-path and the scheduler of that
// time: 27 failed CreateVolume calls with 10 nodes, and 573 with 100 nodes. SCALE=100, as in `npm run prove`, adds the run with
// 100 nodes, which takes some minutes.
import { afterAll, describe, expect, it } from 'vitest'
import { fillEveryPool, type ScaleOptions, type ScaleRun } from './fill-pools.ts'

const SIZES = process.env.SCALE === '100' ? [10, 100] : [10]
const VOLUMES_PER_NODE = 100
const PUBLISHED: Readonly<Record<number, number>> = { 10: 27, 100: 573 }
const HOUR_MS = 3_600_000

const runs: ScaleRun[] = []

async function run(options: ScaleOptions): Promise<ScaleRun> {
  const result = await fillEveryPool(options)
  runs.push(result)
  return result
}

afterAll(() => console.log(formatTable(runs)))

/** Returns the table in docs/explanation/scheduling.md. */
function formatTable(results: readonly ScaleRun[]): string {
  const formatCount = (value: number) => value.toLocaleString('en')
  const rows = results.map(({ nodes, reservesCapacity, boundPods, pods, virtualSeconds, attempts, failedCreates }) => [
    `${nodes} × ${VOLUMES_PER_NODE}`,
    reservesCapacity ? 'on' : 'off',
    `${formatCount(boundPods)} of ${formatCount(pods)}`,
    formatCount(failedCreates),
    formatCount(PUBLISHED[nodes] ?? 0),
    `${virtualSeconds.toFixed(1)} s`,
    formatCount(attempts),
  ])
  const header = [
    '',
    'reservation',
    'pods bound',
    'failed CreateVolume',
    'published upstream',
    'virtual time',
    'attempts',
  ]
  return [header, header.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

describe('filling every pool with pods, late capacity reports and two classes per pool', () => {
  for (const nodes of SIZES) {
    const size = `${nodes} × ${VOLUMES_PER_NODE}`
    it(
      `CAP-16 PLUS-3 ${size}: binds all pods without a failed CreateVolume`,
      async () => {
        const options = { nodes, volumesPerNode: VOLUMES_PER_NODE, reservesCapacity: true }
        const { boundPods, pods, failedCreates } = await run(options)
        expect({ boundPods, failedCreates }).toEqual({ boundPods: pods, failedCreates: 0 })
      },
      HOUR_MS,
    )

    it(
      `CAP-16 ${size} without reservation: binds all pods, with failed CreateVolume calls`,
      async () => {
        const options = { nodes, volumesPerNode: VOLUMES_PER_NODE, reservesCapacity: false }
        const { boundPods, pods, failedCreates } = await run(options)
        expect(boundPods).toBe(pods)
        expect(failedCreates).toBeGreaterThan(0)
      },
      HOUR_MS,
    )
  }
})
