// Entry point of the controller of stateful sets, which creates their pods, claims and revisions.
export { createStatefulSetController } from './stateful-set-controller.ts'
