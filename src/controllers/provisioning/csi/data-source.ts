// Reads a claim's data source: another claim (clone-source.ts) or a snapshot (snapshot-source.ts). External
// populators handle all other kinds.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { finalError, ignoredError } from './preparation-error.ts'
import { SNAPSHOT_GROUP } from './snapshot-kinds.ts'

export interface DataSource {
  readonly is: 'clone' | 'snapshot'
  readonly namespace: string
  readonly name: string
}

export const POPULATOR_MESSAGE = 'Assuming an external populator will provision the volume'

/** Returns undefined if the claim requests an empty volume. Throws a PreparationError if the source is not supported. */
export function dataSourceOf(claim: Readonly<PersistentVolumeClaim>): DataSource | undefined {
  const { dataSource, dataSourceRef } = claim.spec ?? {}
  if (!dataSource && dataSourceRef?.namespace) {
    throw finalError(
      `dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled: ` +
        `use a source in the namespace of the claim`,
    )
  }
  const source = dataSource ?? dataSourceRef
  if (!source) return undefined
  const { apiGroup = '', kind, name } = source
  const { namespace = '' } = claim.metadata
  if (!name) throw finalError(`the PVC source not found for PVC ${claim.metadata.name}: its data source has no name`)
  if (kind === 'PersistentVolumeClaim' && !apiGroup) return { is: 'clone', namespace, name }
  if (kind === 'VolumeSnapshot') {
    if (apiGroup === SNAPSHOT_GROUP) return { is: 'snapshot', namespace, name }
    throw finalError(
      `the PVC source does not belong to the right APIGroup. Expected ${SNAPSHOT_GROUP}, Got ${apiGroup || '""'}`,
    )
  }
  throw ignoredError(
    `data source (${kind}) is not handled by the provisioner, assuming an external populator will provision it`,
  )
}
