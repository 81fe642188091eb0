// Records the calls that change a volume, for the journal of the API server.
import type { VolumeCall } from '../base/operation-details.ts'
import { goNameOf } from './errors.ts'
import type { CallObserver } from './metrics.ts'

/** The methods that change a volume. NodeGetVolumeStats, for example, is called often and changes nothing. */
export const VOLUME_CHANGES: ReadonlySet<string> = new Set([
  'CreateVolume',
  'DeleteVolume',
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
  'ControllerExpandVolume',
  'ControllerModifyVolume',
  'NodeStageVolume',
  'NodeUnstageVolume',
  'NodePublishVolume',
  'NodeUnpublishVolume',
  'NodeExpandVolume',
])

/** Returns an observer that also calls `observer`. `recorder` is absent in a process that records no calls. */
export function recordCalls(
  observer: CallObserver,
  recorder: { recordCall(call: VolumeCall): void } | undefined,
): CallObserver {
  if (!recorder) return observer
  return {
    observeCall(call) {
      observer.observeCall(call)
      const { driverName: driver, method: path, code, seconds, volume, message } = call
      const method = path.slice(path.lastIndexOf('/') + 1)
      if (volume === undefined || !VOLUME_CHANGES.has(method)) return
      const durationMs = seconds * 1_000
      recorder.recordCall({ driver, method, code: goNameOf(code), volume, durationMs, ...(message ? { message } : {}) })
    },
  }
}
