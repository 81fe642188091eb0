// Public exports of the verification of CSI drivers.

export type { LoggedCall } from './calls/call-log.ts'
export { openSocket } from './calls/driver-link.ts'
export { selectChecks } from './catalogue.ts'
export type { Check } from './check.ts'
export type { CheckResult, CheckStatus, VerifyReport } from './report.ts'
export { DEFAULT_SETTINGS, SECRET_KEYS, type SecretKey, type Secrets, type VerifySettings } from './settings.ts'
export { CannotVerifyError, verifyDriver } from './verify-driver.ts'
