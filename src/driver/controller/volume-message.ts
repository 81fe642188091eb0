// Creates the CSI messages Volume and VolumeCondition from a volume record.
import { formatQuantity, quantityFromBytes } from '../../api/quantity.ts'
import type { DriverContext } from '../context.ts'
import { withFullStop } from '../errors.ts'
import { hasLimits } from '../limits/rates.ts'
import type { VolumeRecord } from '../pool/records.ts'

export const toVolumeMessage = (volume: VolumeRecord, driver: DriverContext) => ({
  volumeId: volume.id,
  capacityBytes: BigInt(volume.capacityBytes),
  accessibleTopology: [{ segments: { ...driver.topology } }],
  ...(volume.source
    ? {
        contentSource: {
          type:
            volume.source.kind === 'snapshot'
              ? { case: 'snapshot' as const, value: { snapshotId: volume.source.id } }
              : { case: 'volume' as const, value: { volumeId: volume.source.id } },
        },
      }
    : {}),
})

/** Returns the condition with problems of the volume and the state of its limits. */
export async function describeCondition(volume: VolumeRecord, driver: DriverContext) {
  if (volume.state === 'deleting') {
    return {
      abnormal: true,
      message: 'The deletion of the volume has started and is not complete. Delete the volume again.',
    }
  }
  const problem = await driver.backend.contents.findProblem(volume)
  if (problem) return { abnormal: true, message: problem }
  return { abnormal: false, message: describeLimits(volume, driver) }
}

function describeLimits(volume: VolumeRecord, driver: DriverContext): string {
  if (!hasLimits(volume.limits)) return 'The volume is healthy.'
  const { iops, throughputBytes } = volume.limits
  const limits = [
    iops === undefined ? [] : `${iops} iops`,
    throughputBytes === undefined ? [] : `${formatQuantity(quantityFromBytes(throughputBytes))}B/s`,
  ].flat()
  const enforcement = driver.limits.enforcement(volume.id)
  if (!enforcement) return `The volume is healthy. Its limits of ${limits.join(' and ')} apply when it is staged.`
  if (enforcement.is === 'not enforced') {
    return `The volume is healthy, but its limits of ${limits.join(' and ')} are not enforced: ${withFullStop(enforcement.message)}`
  }
  const caveats = enforcement.caveats.length > 0 ? ` (${enforcement.caveats.join('; ')})` : ''
  return `The volume is healthy. Its limits of ${limits.join(' and ')} are enforced${caveats}.`
}
