// Lists the volumes of a pod that its containers use. Pure. resolve-volume.ts resolves their claims.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Volume } from '../../api/kinds/pod/pod-volumes-schema.ts'

export interface UsedVolume {
  readonly volume: Readonly<Volume>
  readonly name: string
  readonly isMounted: boolean
  readonly isDevice: boolean
}

/** Returns the volumes that a container mounts or uses as a device. Like the kubelet, skips all others. */
export function usedVolumesOf({ spec }: Readonly<Pod>): UsedVolume[] {
  const { initContainers = [], containers: mainContainers = [], ephemeralContainers = [] } = spec ?? {}
  const containers = [...initContainers, ...mainContainers, ...ephemeralContainers]
  const mountedNames = new Set(containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)))
  const deviceNames = new Set(containers.flatMap(({ volumeDevices = [] }) => volumeDevices.map(({ name }) => name)))
  return (spec?.volumes ?? []).flatMap((volume) => {
    const { name } = volume
    const [isMounted, isDevice] = [mountedNames.has(name), deviceNames.has(name)]
    return isMounted || isDevice ? [{ volume, name, isMounted, isDevice }] : []
  })
}

/** Returns the field name of the volume source, e.g. `configMap`, or `emptyDir` if the volume has no source. */
export const sourceOf = (volume: Readonly<Volume>): string =>
  Object.keys(volume).find((key) => key !== 'name' && (volume as Record<string, unknown>)[key] !== undefined) ??
  'emptyDir'
