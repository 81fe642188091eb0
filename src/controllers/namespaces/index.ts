export { runNamespaceController } from './namespace-controller.ts'
