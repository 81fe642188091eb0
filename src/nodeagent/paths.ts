// The directory layout under the agent's root, which is the kubelet's.
//   plugins_registry/                                       registration sockets
//   plugins/kubernetes.io/csi/<driver>/<sha256>/globalmount  staged; vol_data.json beside it says what
//   plugins/kubernetes.io/csi/volumeDevices/…               the same for block volumes
//   pods/<uid>/volumes/kubernetes.io~csi/<volume>/mount      published; vol_data.json beside it
import { createHash } from 'node:crypto'
import { join } from 'node:path'

export type AgentPaths = ReturnType<typeof agentPaths>

export const VOL_DATA = 'vol_data.json'

export function agentPaths(root: string) {
  const csi = join(root, 'plugins', 'kubernetes.io', 'csi')
  const devices = join(csi, 'volumeDevices')
  const pods = join(root, 'pods')
  const pod = (uid: string) => join(pods, part(uid))
  return {
    root,
    registry: join(root, 'plugins_registry'),
    plugins: join(root, 'plugins'),
    csi,
    pods,
    pod,

    stagedDirectory: (driver: string, handle: string) => join(csi, part(driver), sha256(handle)),
    staging: (driver: string, handle: string) => join(csi, part(driver), sha256(handle), 'globalmount'),
    csiVolumes: (uid: string) => join(pod(uid), 'volumes', 'kubernetes.io~csi'),
    csiVolume: (uid: string, volume: string) => join(pod(uid), 'volumes', 'kubernetes.io~csi', part(volume)),
    emptyDirs: (uid: string) => join(pod(uid), 'volumes', 'kubernetes.io~empty-dir'),
    emptyDir: (uid: string, volume: string) => join(pod(uid), 'volumes', 'kubernetes.io~empty-dir', part(volume)),

    devices,
    blockData: (volume: string) => join(devices, part(volume), 'data'),
    blockStaging: (volume: string) => join(devices, 'staging', part(volume)),
    blockPublish: (volume: string) => join(devices, 'publish', part(volume)),
    blockTarget: (uid: string, volume: string) => join(devices, 'publish', part(volume), part(uid)),
    blockLinks: (uid: string) => join(pod(uid), 'volumeDevices', 'kubernetes.io~csi'),
    blockLink: (uid: string, volume: string) => join(pod(uid), 'volumeDevices', 'kubernetes.io~csi', part(volume)),

    subPaths: (uid: string) => join(pod(uid), 'volume-subpaths'),
    containers: (uid: string) => join(pod(uid), 'containers'),
    container: (uid: string, name: string) => join(pod(uid), 'containers', part(name)),
  }
}

/** Names come from objects and drivers: rejects any that would leave its directory. */
function part(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name)) {
    throw new Error(`${JSON.stringify(name)} cannot be the name of a file. Rename the object it belongs to.`)
  }
  return name
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
