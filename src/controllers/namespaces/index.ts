export { createNamespaceController } from './namespace-controller.ts'
