// The public names of the diagnosis.
export { diagnose, TARGET_KINDS, type Target, type TargetKind } from './diagnose.ts'
export type { Diagnosis, DiagnosisState, Fix } from './diagnosis.ts'
export { readSnapshot } from './read-snapshot.ts'
