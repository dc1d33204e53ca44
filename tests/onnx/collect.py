import sys, os, onnx, numpy as np
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
out=sys.argv[1]
import warnings; warnings.filterwarnings("ignore")
cases=collect_testcases(None)
n=0
for c in cases:
    if c.model is None: continue
    d=os.path.join(out,c.name); os.makedirs(d,exist_ok=True)
    onnx.save(c.model, os.path.join(d,"model.onnx"))
    for s,(ins,outs) in enumerate(c.data_sets[:1]):
        for kind,vals,infos in (("input",ins,c.model.graph.input),("output",outs,c.model.graph.output)):
            for i,v in enumerate(vals):
                try:
                    t = v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(np.asarray(v), infos[i].name)
                    t.name = infos[i].name
                    open(os.path.join(d,f"{kind}_{i}.pb"),"wb").write(t.SerializeToString())
                except Exception as e:
                    open(os.path.join(d,"skip"),"w").write(str(e)[:100])
    n+=1
print(n)
