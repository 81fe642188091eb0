// Keeps a node from getting more volumes of a driver than the driver says it can take there (CSINode), and pods from
// nodes that lack a driver which insists on being there. Counted are the volumes of pods on the node or on their way to
// it, each once, and those still attached though no pod uses them any more.

import type { CSIDriver } from '../../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import { claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { ObjectKey } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import { claimKeyOf } from '../../../volumes/matching.ts'
import type { NodeView } from '../../cluster/node-view.ts'
import { getOrMake } from '../../get-or-make.ts'
import { INDIFFERENT, type Plugin } from '../../plugin.ts'
import type { VolumeCaches } from '../volume-binding/pod-volumes.ts'

export const VOLUME_LIMITS = 'NodeVolumeLimits'
export const REASON_LIMIT = 'node(s) exceed max volume count'
export const driverIsMissing = (driver: string): string => `${driver} CSI driver is not installed on the node`

export interface VolumeLimitsDeps {
  readonly caches: VolumeCaches
  readonly csiNodes: Cache<CSINode>
  readonly drivers: Cache<CSIDriver>
  readonly attachments: Cache<VolumeAttachment>
}

export interface VolumeLimits extends Plugin {
  /** Something other than the pods of a node has changed what is counted there. */
  recount(node: NodeView): void
}

const BY_NODE = 'scheduler/node'
const nodeNamesOf = ({ spec }: Readonly<VolumeAttachment>): string[] => [spec.nodeName]
const REFUSED = [REASON_LIMIT]

interface Counted {
  readonly podsVersion: number
  /** The volumes of each driver, by claim or, where no claim is known, by volume. */
  readonly byDriver: ReadonlyMap<string, ReadonlySet<string>>
}

export function createVolumeLimits({ caches, csiNodes, drivers, attachments }: VolumeLimitsDeps): VolumeLimits {
  attachments.addIndex(BY_NODE, nodeNamesOf)
  const counted = new WeakMap<NodeView, Counted>()

  function driverOf(claimKey: ObjectKey): string | undefined {
    const claim = caches.claims.get(claimKey)
    if (!claim) return undefined
    const volume = claim.spec?.volumeName ? caches.volumes.get(claim.spec.volumeName) : undefined
    return volume ? volume.spec?.csi?.driver : caches.classes.get(claimClassName(claim) ?? '')?.provisioner
  }

  function volumesOn(node: NodeView): Counted['byDriver'] {
    const known = counted.get(node)
    if (known?.podsVersion === node.podsVersion) return known.byDriver
    const byDriver = new Map<string, Set<string>>()
    const count = (driver: string | undefined, volume: string) => {
      if (driver === undefined) return
      getOrMake(byDriver, driver, () => new Set()).add(volume)
    }
    for (const { claims } of node.pods.values()) for (const { key } of claims) count(driverOf(key), key)
    for (const { spec } of attachments.byIndex(BY_NODE, node.name)) {
      const name = spec.source.persistentVolumeName
      const volume = name === undefined ? undefined : caches.volumes.get(name)
      if (volume) count(spec.attacher, claimKeyOf(volume) ?? `volume ${name}`)
    }
    counted.set(node, { podsVersion: node.podsVersion, byDriver })
    return byDriver
  }

  return {
    name: VOLUME_LIMITS,
    recount: (node) => void counted.delete(node),
    prepare({ claims }) {
      const wanted = new Map<string, ObjectKey[]>()
      for (const { key } of claims) {
        const driver = driverOf(key)
        if (driver === undefined) continue
        getOrMake(wanted, driver, () => []).push(key)
      }
      if (wanted.size === 0) return INDIFFERENT
      const insists = new Set(
        [...wanted.keys()].filter((name) => drivers.get(name)?.spec.preventPodSchedulingIfMissing === true),
      )
      return {
        is: 'judge',
        refuses(node) {
          const here = csiNodes.get(node.name)?.spec.drivers
          for (const [driver, keys] of wanted) {
            const onNode = here?.find(({ name }) => name === driver)
            if (!onNode && insists.has(driver)) return [driverIsMissing(driver)]
            const most = onNode?.allocatable?.count
            if (most === undefined) continue
            const volumes = volumesOn(node).get(driver)
            const added = keys.filter((key) => !volumes?.has(key)).length
            if (added > 0 && (volumes?.size ?? 0) + added > most) return REFUSED
          }
          return undefined
        },
      }
    },
  }
}
