// The public names of namespaces.
export { createNamespaceController } from './namespace-controller.ts'
