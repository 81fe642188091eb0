// Public exports of the namespace controller, which empties deleted namespaces.
export { createNamespaceController } from './namespace-controller.ts'
