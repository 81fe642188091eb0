// At rest: what is published of free storage is what the driver has, for every class whose volumes wait for a pod and every
// node; and for nothing else.
import { quantityToBytes } from '../../../api/quantity.ts'
import { PLACE } from '../universe.ts'
import type { Problem } from './court.ts'
import { freeBytes, poolsAt } from './feasible.ts'
import type { Quiet } from './quiet.ts'

/** The one with places; those without have nothing that could differ by node. */
const DRIVER = 'local.sim'

export function capacityProblems({ stage, view, past }: Quiet): Problem[] {
  if (!stage.drivers.has(DRIVER) || past.hadGatesOff) return []
  const said = new Map<string, bigint[]>()
  for (const { storageClassName = '', nodeTopology, capacity } of view.capacities.values()) {
    const node = nodeTopology?.matchLabels?.[PLACE]
    if (node === undefined) continue // another driver's
    const place = `${storageClassName} on ${node}`
    said.set(place, [...(said.get(place) ?? []), quantityToBytes(capacity ?? '0')])
  }
  const problems: string[] = []
  for (const [className, { provisioner, volumeBindingMode }] of view.classes) {
    if (provisioner !== DRIVER || volumeBindingMode !== 'WaitForFirstConsumer') continue
    for (const [node, { spec }] of view.csiNodes) {
      if (!spec.drivers.some(({ name }) => name === DRIVER) || !view.nodes.has(node)) continue
      const place = `${className} on ${node}`
      const free = poolsAt(stage, DRIVER, node).reduce((sum, pool) => sum + freeBytes(stage, DRIVER, pool), 0)
      const truth = BigInt(Math.max(0, free))
      const [bytes, ...more] = said.get(place) ?? (truth === 0n ? [0n] : [])
      said.delete(place)
      if (bytes !== truth || more.length > 0) {
        problems.push(`the reports of ${place} say ${[bytes, ...more].join(', ')}, and ${truth} is free`)
      }
    }
  }
  for (const place of said.keys()) problems.push(`there is a report of ${place}, where nobody is`)
  return problems.map((text) => ({ rule: 'capacity', text }))
}
