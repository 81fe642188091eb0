// The directory layout under the agent's root, which follows the kubelet's.
//   plugins_registry/                                        registration sockets
//   plugins/kubernetes.io/csi/<driver>/<sha256>/globalmount  staged volume, with vol_data.json in the parent directory
//   plugins/kubernetes.io/csi/volumeDevices/…                staged and published block volumes
//   pods/<uid>/volumes/kubernetes.io~csi/<volume>/mount      published volume, with vol_data.json in the parent directory
//   pods/<uid>/volumes/kubernetes.io~empty-dir/<volume>      emptyDir volume
//   pods/<uid>/volumes/kubernetes.io~projected/<volume>      projected, configMap, secret or downwardAPI volume
//   pods/<uid>/volumeDevices/kubernetes.io~csi/<volume>      link to a published block volume
//   pods/<uid>/volume-subpaths/                              mounts of subPaths
//   pods/<uid>/containers/<name>/                            records of the commands of a container
import { createHash } from 'node:crypto'
import { join } from 'node:path'

export type AgentPaths = ReturnType<typeof agentPaths>

export const VOL_DATA = 'vol_data.json'

export function agentPaths(root: string) {
  const csi = join(root, 'plugins', 'kubernetes.io', 'csi')
  const devices = join(csi, 'volumeDevices')
  const pods = join(root, 'pods')
  const pod = (uid: string) => join(pods, pathSegment(uid))
  return {
    root,
    registry: join(root, 'plugins_registry'),
    plugins: join(root, 'plugins'),
    csi,
    pods,
    pod,

    staging: (driver: string, handle: string) => join(csi, pathSegment(driver), sha256(handle), 'globalmount'),
    csiVolumes: (uid: string) => join(pod(uid), 'volumes', 'kubernetes.io~csi'),
    csiVolume: (uid: string, volume: string) => join(pod(uid), 'volumes', 'kubernetes.io~csi', pathSegment(volume)),
    emptyDirs: (uid: string) => join(pod(uid), 'volumes', 'kubernetes.io~empty-dir'),
    emptyDir: (uid: string, volume: string) =>
      join(pod(uid), 'volumes', 'kubernetes.io~empty-dir', pathSegment(volume)),
    projectedVolumes: (uid: string) => join(pod(uid), 'volumes', 'kubernetes.io~projected'),
    projected: (uid: string, volume: string) =>
      join(pod(uid), 'volumes', 'kubernetes.io~projected', pathSegment(volume)),

    devices,
    blockData: (volume: string) => join(devices, pathSegment(volume), 'data'),
    blockStaging: (volume: string) => join(devices, 'staging', pathSegment(volume)),
    blockPublish: (volume: string) => join(devices, 'publish', pathSegment(volume)),
    blockTarget: (uid: string, volume: string) => join(devices, 'publish', pathSegment(volume), pathSegment(uid)),
    blockLinks: (uid: string) => join(pod(uid), 'volumeDevices', 'kubernetes.io~csi'),
    blockLink: (uid: string, volume: string) =>
      join(pod(uid), 'volumeDevices', 'kubernetes.io~csi', pathSegment(volume)),

    subPaths: (uid: string) => join(pod(uid), 'volume-subpaths'),
    containers: (uid: string) => join(pod(uid), 'containers'),
    container: (uid: string, name: string) => join(pod(uid), 'containers', pathSegment(name)),
  }
}

/** Throws if the name, which comes from an API object or a driver, would refer to a path outside the directory. */
function pathSegment(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw new Error(`${JSON.stringify(name)} is not a valid file name. Rename the object.`)
  }
  return name
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
