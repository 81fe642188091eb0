// Finds the free storage for the expansion of a volume in the capacity reports of its class.
import type { CapacityRow, VolumeRow } from '../rows/storage.ts'
import { type LabelledNode, nameOfSegment, nodesOfReport, nodesOfVolume } from './segments.ts'

type FreeStorage =
  | { readonly is: 'known'; readonly bytes: number; readonly place: string }
  | { readonly is: 'unknown'; readonly reason: string }

/** Finds the reports of the class that share a node with the volume, and returns the one with the most free storage. */
export function findFreeStorage(
  volume: VolumeRow | undefined,
  className: string | undefined,
  capacities: readonly CapacityRow[],
  nodes: readonly LabelledNode[],
): FreeStorage {
  if (!volume) return { is: 'unknown', reason: 'The volume could not be read.' }
  const volumeNodes = nodesOfVolume(volume, nodes)
  const reports = capacities.filter((report) => {
    if (report.className !== className || report.freeBytes === undefined) return false
    if (volumeNodes === undefined) return true
    return nodesOfReport(report, nodes).some(({ name }) => volumeNodes.some((node) => node.name === name))
  })
  const best = reports.sort((a, b) => b.freeBytes! - a.freeBytes!)[0]
  if (!best)
    return {
      is: 'unknown',
      reason: `The driver reports no capacity of class ${className ?? ''} for the nodes of the volume.`,
    }
  return { is: 'known', bytes: best.freeBytes!, place: nameOfSegment(best.segment, nodes) }
}
