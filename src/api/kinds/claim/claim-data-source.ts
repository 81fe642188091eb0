// The data source of a claim. `dataSource` (older, same namespace) and `dataSourceRef` mean the same, so the server fills
// in whichever is missing. The older field on its own may refer to claims and snapshots only.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems } from '../../names.ts'
import type { TypedLocalObjectReference, TypedObjectReference } from '../shared/references-schema.ts'
import type { PersistentVolumeClaimSpec } from './claim-schema.ts'

/** Applied on create and update: drops unsupported references, then copies the one that is set. */
export function withDataSources(
  spec: PersistentVolumeClaimSpec,
  stored: PersistentVolumeClaimSpec | undefined,
): PersistentVolumeClaimSpec {
  const next = { ...spec }
  // Sources in other namespaces are not supported: drop such a reference unless the stored claim has one.
  if (next.dataSourceRef?.namespace && !stored?.dataSourceRef) delete next.dataSourceRef
  const inUse = stored?.dataSource !== undefined || stored?.dataSourceRef !== undefined
  if (!inUse && !next.dataSourceRef && next.dataSource && !isClaimOrSnapshot(next.dataSource)) delete next.dataSource
  return withBothDataSources(next)
}

/** Copies one field to the other if only one is set. */
export function withBothDataSources(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  const { dataSource, dataSourceRef } = spec
  if (dataSource && !dataSourceRef) return { ...spec, dataSourceRef: { ...dataSource } }
  if (dataSourceRef && !dataSource && !dataSourceRef.namespace) {
    const { namespace: _none, ...local } = dataSourceRef
    return { ...spec, dataSource: local }
  }
  return spec
}

export interface DataSourceOptions {
  readonly field: string
  /** Skips the check of apiGroup, because the stored claim has one already. */
  readonly anyApiGroup: boolean
}

export function validateDataSources(
  spec: PersistentVolumeClaimSpec,
  { field, anyApiGroup }: DataSourceOptions,
  errors: FieldErrors,
): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource) validateSource(dataSource, { field: `${field}.dataSource`, anyApiGroup }, errors)
  if (dataSourceRef) {
    validateSource(dataSourceRef, { field: `${field}.dataSourceRef`, anyApiGroup }, errors)
    const namespace = dataSourceRef.namespace
    if (namespace) errors.invalidAll(`${field}.dataSourceRef.namespace`, namespace, dns1123LabelProblems(namespace))
  }
  if (!dataSource || !dataSourceRef) return
  if (dataSourceRef.namespace) {
    errors.invalid(field, `${field}.dataSource`, 'may not be specified when dataSourceRef.namespace is specified')
  } else if (!sameSource(dataSource, dataSourceRef)) {
    errors.invalid(field, `${field}.dataSource`, 'must match dataSourceRef')
  }
}

function validateSource(
  source: TypedLocalObjectReference | TypedObjectReference,
  { field, anyApiGroup }: DataSourceOptions,
  errors: FieldErrors,
): void {
  if (source.name === '') errors.required(`${field}.name`)
  if (source.kind === '') errors.required(`${field}.kind`)
  if (!source.apiGroup) {
    if (source.kind !== 'PersistentVolumeClaim') {
      errors.invalid(field, source.kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    }
  } else if (!anyApiGroup) {
    errors.invalidAll(`${field}.apiGroup`, source.apiGroup, dns1123SubdomainProblems(source.apiGroup))
  }
}

function isClaimOrSnapshot({ apiGroup, kind }: TypedLocalObjectReference): boolean {
  if (!apiGroup) return kind === 'PersistentVolumeClaim'
  return apiGroup === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot'
}

const sameSource = (a: TypedLocalObjectReference, b: TypedObjectReference): boolean =>
  a.apiGroup === b.apiGroup && a.kind === b.kind && a.name === b.name
