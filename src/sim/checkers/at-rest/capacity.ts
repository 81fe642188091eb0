// Checks capacity at rest: the local driver's capacity objects report the free capacity of its nodes, and no pool exceeds
// its capacity.
import { isFenced } from '../../../api/kinds/node/fencing.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import type { FakeVolume } from '../../../csi/fake/index.ts'
import { TOPOLOGY_KEY } from '../../plan/catalog.ts'
import { MANUAL_CAPACITY } from '../../workload/admin-actions.ts'
import { IMPORT_PREFIX } from '../../workload/volume-actions.ts'
import type { Problem } from '../context.ts'
import { copiesOf, freeBytes, listReachablePools } from '../feasibility.ts'
import type { AtRestContext } from './index.ts'

/** The only driver with topology; capacity of the others does not depend on the node. */
const DRIVER = 'local.sim'

export function findCapacityProblems({ system, view, exemptions }: AtRestContext): Problem[] {
  if (!system.drivers.has(DRIVER) || exemptions.hadGatesOff) return []
  const publishedBytes = new Map<string, bigint[]>()
  for (const { metadata, storageClassName = '', nodeTopology, capacity } of view.capacities.values()) {
    if (metadata.name?.startsWith(MANUAL_CAPACITY)) continue // a user created it, and may have failed to delete it
    const node = nodeTopology?.matchLabels?.[TOPOLOGY_KEY]
    if (node === undefined) continue // it belongs to another driver
    const place = `${storageClassName} on ${node}`
    publishedBytes.set(place, [...(publishedBytes.get(place) ?? []), quantityToBytes(capacity ?? '0')])
  }
  const problems: string[] = []
  for (const [name, { settings }] of system.drivers)
    for (const pool of settings.pools) {
      // Imported volumes reserve no capacity.
      const isCreated = ({ id, pool: poolName }: FakeVolume) => poolName === pool.name && !id.startsWith(IMPORT_PREFIX)
      const createdVolumes = Object.values(system.drivers.get(name)!.state().volumes).filter(isCreated)
      const usedBytes = createdVolumes.reduce((sum, { capacityBytes, copies }) => sum + capacityBytes * copies, 0)
      if (usedBytes > pool.capacityBytes)
        problems.push(
          `pool ${pool.name} of ${name} exceeds its capacity: ${usedBytes} of ${pool.capacityBytes} bytes are used`,
        )
    }
  for (const [className, storageClass] of view.classes) {
    const { provisioner, volumeBindingMode } = storageClass
    if (provisioner !== DRIVER || volumeBindingMode !== 'WaitForFirstConsumer') continue
    for (const [node, { spec }] of view.csiNodes) {
      if (!spec.drivers.some(({ name }) => name === DRIVER) || !view.nodes.has(node)) continue
      if (isFenced(view.nodes.get(node))) continue // it must have no capacity object
      const place = `${className} on ${node}`
      const availableBytes = listReachablePools(system, DRIVER, node).reduce(
        (sum, pool) => sum + freeBytes(system, DRIVER, pool),
        0,
      )
      const expectedBytes = BigInt(Math.floor(Math.max(0, availableBytes) / copiesOf(storageClass)))
      const [bytes, ...duplicates] = publishedBytes.get(place) ?? (expectedBytes === 0n ? [0n] : [])
      publishedBytes.delete(place)
      if (bytes !== expectedBytes || duplicates.length > 0) {
        problems.push(
          `capacity objects of ${place} report ${[bytes, ...duplicates].join(', ')}, but ${expectedBytes} is free`,
        )
      }
    }
  }
  for (const place of publishedBytes.keys())
    problems.push(`there is a capacity object of ${place}, which has no driver or node`)
  return problems.map((text) => ({ rule: 'capacity', text }))
}
