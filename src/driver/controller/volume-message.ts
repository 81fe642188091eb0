// A volume and its condition, as the protocol writes them.

import { formatQuantity, quantityFromBytes } from '../../api/quantity.ts'
import type { DriverContext } from '../context.ts'
import { stopped } from '../errors.ts'
import { hasLimits } from '../limits/rates.ts'
import type { VolumeRecord } from '../pool/records.ts'

export const volumeMessage = (volume: VolumeRecord, driver: DriverContext) => ({
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

/** For people: what is wrong with the volume, or what it does not do though it was asked to. */
export async function conditionOf(volume: VolumeRecord, driver: DriverContext) {
  if (volume.state === 'deleting') {
    return { abnormal: true, message: 'Its deletion has begun and is not finished. It can only be deleted again.' }
  }
  const problem = await driver.backend.contents.problem(volume)
  if (problem) return { abnormal: true, message: problem }
  return { abnormal: false, message: limitText(volume, driver) }
}

function limitText(volume: VolumeRecord, driver: DriverContext): string {
  if (!hasLimits(volume.limits)) return 'The volume is healthy.'
  const { iops, throughputBytes } = volume.limits
  const limits = [
    iops === undefined ? [] : `${iops} iops`,
    throughputBytes === undefined ? [] : `${formatQuantity(quantityFromBytes(throughputBytes))}B/s`,
  ].flat()
  const enforcement = driver.limits.enforcement(volume.id)
  if (!enforcement) return `The volume is healthy. Its limits of ${limits.join(' and ')} apply when it is staged.`
  if (enforcement.is === 'not enforced') {
    return `The volume is healthy, but its limits of ${limits.join(' and ')} are not enforced: ${stopped(enforcement.because)}`
  }
  const escapes = enforcement.escapes.length > 0 ? ` (${enforcement.escapes.join('; ')})` : ''
  return `The volume is healthy. Its limits of ${limits.join(' and ')} are enforced${escapes}.`
}
