// Judges what a driver is asked to publish: a volume of one node may not be asked for on a second one while the storage
// still has it on the first. The fake driver would refuse; a real one may not.
import { callDriver } from '../../csi/driver.ts'
import { type ControllerPublishVolumeRequest, VolumeCapability_AccessMode_Mode as Mode } from '../../csi/gen/csi_pb.js'
import { type CsiDriver, createCsiDriver } from '../../csi/index.ts'
import type { SimDriver } from '../driver.ts'

const MANY_NODES: ReadonlySet<Mode> = new Set([
  Mode.MULTI_NODE_READER_ONLY,
  Mode.MULTI_NODE_SINGLE_WRITER,
  Mode.MULTI_NODE_MULTI_WRITER,
])

export function watchPublishes(driver: CsiDriver, storage: SimDriver, convict: (crime: string) => void): CsiDriver {
  return createCsiDriver((method, request, options) => {
    if (method.name === 'ControllerPublishVolume') judge(request as ControllerPublishVolumeRequest)
    return callDriver(driver, method, request, options)
  })

  function judge({ volumeId, nodeId, volumeCapability }: ControllerPublishVolumeRequest): void {
    if (MANY_NODES.has(volumeCapability?.accessMode?.mode ?? Mode.UNKNOWN)) return
    const others = Object.keys(storage.state().volumes[volumeId]?.attachments ?? {}).filter((id) => id !== nodeId)
    if (others.length > 0) convict(`${volumeId} was asked for on ${nodeId} while it is on ${others}`)
  }
}
