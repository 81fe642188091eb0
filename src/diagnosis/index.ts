// The public names of the diagnosis.
export { type DiagnoseResult, diagnose, TARGET_KINDS, type Target, type TargetKind } from './diagnose.ts'
export type { Diagnosis, DiagnosisState, Fix, Subject } from './diagnosis.ts'
export { readSnapshot } from './read-snapshot.ts'
