// Public exports of the controllers that let nodes join: the certificate controller, the bootstrap signer and the token cleaner.
export { createBootstrapSigner } from './bootstrap-signer.ts'
export { createCertificateController, type Requester } from './certificate-controller.ts'
export type { NodeCertificatePermission } from './plan-request.ts'
export { createTokenCleaner } from './token-cleaner.ts'
