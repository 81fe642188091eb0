// Capacity at rest: there is one capacity object for every node and every class that waits for a consumer, it states what the
// driver has free, there are no others, and no pool is over-full.
import { quantityToBytes } from '../../../api/quantity.ts'
import type { FakeVolume } from '../../../csi/fake/index.ts'
import { PLACE } from '../../plan/catalog.ts'
import { IMPORTED } from '../../workload/volume-actions.ts'
import type { Problem } from '../context.ts'
import { freeBytes, poolsAt } from '../feasible.ts'
import type { AtRest } from './index.ts'

/** The only driver with topology; capacity of the others does not depend on the node. */
const DRIVER = 'local.sim'

export function capacityProblems({ system, view, exemptions }: AtRest): Problem[] {
  if (!system.drivers.has(DRIVER) || exemptions.hadGatesOff) return []
  const said = new Map<string, bigint[]>()
  for (const { storageClassName = '', nodeTopology, capacity } of view.capacities.values()) {
    const node = nodeTopology?.matchLabels?.[PLACE]
    if (node === undefined) continue // of another driver
    const place = `${storageClassName} on ${node}`
    said.set(place, [...(said.get(place) ?? []), quantityToBytes(capacity ?? '0')])
  }
  const problems: string[] = []
  for (const [name, { settings }] of system.drivers)
    for (const pool of settings.pools) {
      // Imported volumes reserve no capacity.
      const isCreated = ({ id, pool: of }: FakeVolume) => of === pool.name && !id.startsWith(IMPORTED)
      const created = Object.values(system.drivers.get(name)!.state().volumes).filter(isCreated)
      const used = created.reduce((sum, { capacityBytes, copies }) => sum + capacityBytes * copies, 0)
      if (used > pool.capacityBytes)
        problems.push(`pool ${pool.name} of ${name} is over-full: ${used} of ${pool.capacityBytes}`)
    }
  for (const [className, { provisioner, volumeBindingMode }] of view.classes) {
    if (provisioner !== DRIVER || volumeBindingMode !== 'WaitForFirstConsumer') continue
    for (const [node, { spec }] of view.csiNodes) {
      if (!spec.drivers.some(({ name }) => name === DRIVER) || !view.nodes.has(node)) continue
      const place = `${className} on ${node}`
      const free = poolsAt(system, DRIVER, node).reduce((sum, pool) => sum + freeBytes(system, DRIVER, pool), 0)
      const truth = BigInt(Math.max(0, free))
      const [bytes, ...more] = said.get(place) ?? (truth === 0n ? [0n] : [])
      said.delete(place)
      if (bytes !== truth || more.length > 0) {
        problems.push(`capacity objects of ${place} state ${[bytes, ...more].join(', ')}, and ${truth} is free`)
      }
    }
  }
  for (const place of said.keys()) problems.push(`there is a capacity object of ${place}, which has no driver or node`)
  return problems.map((text) => ({ rule: 'capacity', text }))
}
