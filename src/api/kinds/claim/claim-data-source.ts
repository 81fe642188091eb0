// Prepares and validates a claim's data source. The older field `dataSource` and the newer `dataSourceRef` have the
// same meaning, so the server copies one to the other. `dataSource` without `dataSourceRef` may only refer to a claim or a
// snapshot.
import type { FieldErrors } from '../../field-errors.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems } from '../../names.ts'
import type { TypedLocalObjectReference, TypedObjectReference } from '../shared/references-schema.ts'
import type { PersistentVolumeClaimSpec } from './claim-schema.ts'

/** Drops unsupported references and copies the remaining one to the other field. */
export function prepareDataSources(
  spec: PersistentVolumeClaimSpec,
  storedSpec: PersistentVolumeClaimSpec | undefined,
): PersistentVolumeClaimSpec {
  const preparedSpec = { ...spec }
  // A source in another namespace is not supported. It is kept only if the stored claim has a reference.
  if (preparedSpec.dataSourceRef?.namespace && !storedSpec?.dataSourceRef) delete preparedSpec.dataSourceRef
  const hasStoredSource = storedSpec?.dataSource !== undefined || storedSpec?.dataSourceRef !== undefined
  if (
    !hasStoredSource &&
    !preparedSpec.dataSourceRef &&
    preparedSpec.dataSource &&
    !isClaimOrSnapshot(preparedSpec.dataSource)
  )
    delete preparedSpec.dataSource
  return mirrorDataSource(preparedSpec)
}

/** Copies one field to the other if only one is set. A reference to another namespace does not fit into dataSource. */
export function mirrorDataSource(spec: PersistentVolumeClaimSpec): PersistentVolumeClaimSpec {
  const { dataSource, dataSourceRef } = spec
  if (dataSource && !dataSourceRef) return { ...spec, dataSourceRef: { ...dataSource } }
  if (dataSourceRef && !dataSource && !dataSourceRef.namespace) {
    const { namespace: _namespace, ...localReference } = dataSourceRef
    return { ...spec, dataSource: localReference }
  }
  return spec
}

export interface DataSourceOptions {
  readonly field: string
  /** Whether apiGroup is not validated, because the stored claim already has one. */
  readonly allowsAnyApiGroup: boolean
}

export function validateDataSources(
  spec: PersistentVolumeClaimSpec,
  { field, allowsAnyApiGroup }: DataSourceOptions,
  errors: FieldErrors,
): void {
  const { dataSource, dataSourceRef } = spec
  if (dataSource) validateSource(dataSource, { field: `${field}.dataSource`, allowsAnyApiGroup }, errors)
  if (dataSourceRef) {
    validateSource(dataSourceRef, { field: `${field}.dataSourceRef`, allowsAnyApiGroup }, errors)
    const namespace = dataSourceRef.namespace
    if (namespace) errors.invalidAll(`${field}.dataSourceRef.namespace`, namespace, dns1123LabelProblems(namespace))
  }
  if (!dataSource || !dataSourceRef) return
  if (dataSourceRef.namespace) {
    errors.invalid(field, `${field}.dataSource`, 'may not be specified when dataSourceRef.namespace is specified')
  } else if (!isSameSource(dataSource, dataSourceRef)) {
    errors.invalid(field, `${field}.dataSource`, 'must match dataSourceRef')
  }
}

function validateSource(
  source: TypedLocalObjectReference | TypedObjectReference,
  { field, allowsAnyApiGroup }: DataSourceOptions,
  errors: FieldErrors,
): void {
  if (source.name === '') errors.required(`${field}.name`)
  if (source.kind === '') errors.required(`${field}.kind`)
  if (!source.apiGroup) {
    if (source.kind !== 'PersistentVolumeClaim') {
      errors.invalid(field, source.kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    }
  } else if (!allowsAnyApiGroup) {
    errors.invalidAll(`${field}.apiGroup`, source.apiGroup, dns1123SubdomainProblems(source.apiGroup))
  }
}

function isClaimOrSnapshot({ apiGroup, kind }: TypedLocalObjectReference): boolean {
  if (!apiGroup) return kind === 'PersistentVolumeClaim'
  return apiGroup === 'snapshot.storage.k8s.io' && kind === 'VolumeSnapshot'
}

const isSameSource = (a: TypedLocalObjectReference, b: TypedObjectReference): boolean =>
  a.apiGroup === b.apiGroup && a.kind === b.kind && a.name === b.name
