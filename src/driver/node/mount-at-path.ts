// Finds how a volume is mounted at the volume_path of a request.
import { type DriverContext, findStaging } from '../context.ts'
import { notAtPath } from '../errors.ts'
import type { AccessType, VolumeRecord } from '../pool/records.ts'
import { cleanPath } from './paths.ts'

/** Returns the staging or publication at this path. Throws NOT_FOUND if there is none. */
export async function getMountAt(
  volume: VolumeRecord,
  volumePath: string,
  driver: DriverContext,
): Promise<{ path: string; accessType: AccessType }> {
  const path = cleanPath(volumePath)
  const staging = await findStaging(driver, volume.id)
  if (staging?.path === path) return staging
  const publication = driver.mountRecords.get(volume.id)?.published.find((candidate) => candidate.path === path)
  if (publication && (await driver.backend.node.isPublished(volume, publication))) return publication
  throw notAtPath(volume.id, volumePath)
}
