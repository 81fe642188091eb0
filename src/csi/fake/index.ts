// Public exports of the fake driver: an in-memory CSI driver with fault rules (script) and a record of its calls.
export { createFakeDriver, type FakeDriver } from './fake-driver.ts'
export { isAccessibleFrom } from './pools.ts'
export { createRecord, type FakeRecord } from './record.ts'
export { createScript, type FakeEffect, type FakeRule, type Script } from './script.ts'
export {
  FAKE_CONTROLLER_CAPABILITIES,
  type FakePool,
  type FakeSettings,
  fakeSettings,
} from './settings.ts'
export { emptyState, type FakeState, type FakeVolume } from './state.ts'
