// Prints the table beside what the design document's authors published for their run (csi-driver-host-path, the
// scheduler of its time): 27 and 573 volumes asked for in vain. SCALE=full adds 100 × 100 without reservation.
import { describe, expect, it } from 'vitest'
import { fillEveryPool, type ScaleOptions, type ScaleRun } from './scheduling-scale.ts'

const PUBLISHED: Readonly<Record<string, number>> = { '10 × 100': 27, '100 × 100': 573 }
const runs: ScaleRun[] = []

async function run(options: ScaleOptions): Promise<ScaleRun> {
  const result = await fillEveryPool(options)
  runs.push(result)
  console.log(lineOf(result))
  return result
}

const sizeOf = ({ nodes, volumesPerNode }: ScaleOptions): string => `${nodes} × ${volumesPerNode}`

const lineOf = (it: ScaleRun): string =>
  `${sizeOf(it)}, reservation ${it.capacityReservation ? 'on' : 'off'}: ${it.bound} of ${it.pods} pods bound after ` +
  `${it.virtualSeconds.toFixed(1)} s of virtual time, ${it.attempts} attempts, ${it.failedCreates} failed CreateVolume ` +
  `calls (published upstream: ${PUBLISHED[sizeOf(it)] ?? 'none'})`

describe('pods with volumes of their own until every pool is full, reports late, two classes per pool', () => {
  it('CAP-16 PLUS-3 10 × 100: all bound, and no volume is asked for in vain', async () => {
    const { bound, pods, failedCreates } = await run({ nodes: 10, volumesPerNode: 100, capacityReservation: true })
    expect({ bound, failedCreates }).toEqual({ bound: pods, failedCreates: 0 })
  })

  it('CAP-16 10 × 100 without reservation: all bound in the end', async () => {
    const { bound, pods, failedCreates } = await run({ nodes: 10, volumesPerNode: 100, capacityReservation: false })
    expect(bound).toBe(pods)
    expect(failedCreates).toBeGreaterThan(0)
  })
})
