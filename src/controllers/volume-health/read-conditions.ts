// Reads volume conditions from a CSI driver: of all volumes with ListVolumes, or of a single one with ControllerGetVolume.
import { type CsiDriver, CsiError } from '../../csi/index.ts'

/** VolumeCondition of CSI. The message is for humans. */
export interface VolumeCondition {
  readonly isAbnormal: boolean
  readonly message: string
}

export interface ReadOptions {
  readonly driver: CsiDriver
  /** Timeout of one call. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Returns the conditions by volume handle. Volumes that the driver lists without a condition are absent. */
export async function listConditions({
  driver,
  timeoutMs,
  signal,
}: ReadOptions): Promise<Map<string, VolumeCondition>> {
  const conditions = new Map<string, VolumeCondition>()
  let startingToken = ''
  do {
    const response = await driver.controller.listVolumes({ startingToken }, { timeoutMs, signal })
    for (const { volume, status } of response.entries) {
      const condition = status?.volumeCondition
      if (volume && condition) {
        conditions.set(volume.volumeId, { isAbnormal: condition.abnormal, message: condition.message })
      }
    }
    startingToken = response.nextToken
  } while (startingToken !== '')
  return conditions
}

/** Returns undefined if the driver does not know the condition. A volume that the driver cannot find is abnormal. */
export async function getCondition(
  volumeId: string,
  { driver, timeoutMs, signal }: ReadOptions,
): Promise<VolumeCondition | undefined> {
  try {
    const { status } = await driver.controller.controllerGetVolume({ volumeId }, { timeoutMs, signal })
    const condition = status?.volumeCondition
    return condition && { isAbnormal: condition.abnormal, message: condition.message }
  } catch (error) {
    if (!(error instanceof CsiError) || error.codeName !== 'NOT_FOUND') throw error
    return { isAbnormal: true, message: `The driver cannot find the volume: ${error.message}` }
  }
}
