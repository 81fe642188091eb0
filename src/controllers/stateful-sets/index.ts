// Public exports of the stateful set controller, which creates pods, claims and revisions.
export { createStatefulSetController } from './stateful-set-controller.ts'
