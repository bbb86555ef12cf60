#include "formats/svg/page.h"

namespace assay::formats {

const std::string_view kFlameStyle = R"CSS(
svg{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;background:#fff}
.ui{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans','Liberation Sans',sans-serif}
.h1{font-size:18px;font-weight:600;fill:#1d2430}
.h2{font-size:12px;fill:#5b6472}
.leg{font-size:11.5px;fill:#3c4452}
.f{cursor:pointer}
.f text{font-size:11px;fill:#1a1a1a;pointer-events:none;white-space:pre}
.f.g text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans','Liberation Sans',sans-serif;font-weight:600;fill:#39414e}
.f.gone rect{stroke:#4f86c6;stroke-dasharray:3 2;stroke-width:1}
.f.up{opacity:.55}
.f.hit rect{fill:#b65fe0!important}
.f.hit text{fill:#fff}
.f.on rect,.f:hover rect{stroke:#111;stroke-width:1.4}
#tip{pointer-events:none}
#tip rect{fill:#1d2430;opacity:.95}
#tip text{fill:#fff;font-size:12px}
#tip .dim{fill:#b9c2d0}
#reset{cursor:pointer;font-size:12px;fill:#1558b0}
#found{font-size:12px;fill:#8d2fc0;font-weight:600}
input{box-sizing:border-box;width:100%;height:26px;border:1px solid #c5ccd8;border-radius:6px;padding:0 9px;font:12px system-ui,sans-serif;color:#1d2430;background:#fff;outline-color:#7aa7e8}
@media print{.screen{display:none}svg{background:none}}
)CSS";

const std::string_view kFlameScript = R"JS(
(function(){
'use strict';
var svg=document.documentElement,$=function(i){return document.getElementById(i)};
var left=+svg.dataset.left,W=+svg.dataset.width,top0=+svg.dataset.top,row=+svg.dataset.row,rows=+svg.dataset.rows;
var icicle=svg.dataset.icicle==='1',CH=6.63,NS='http://www.w3.org/2000/svg';
var frames=[].slice.call(document.querySelectorAll('.f')).map(function(g){
  var t=g.querySelector('title'),lines=t.textContent.split('\n');g.removeChild(t);
  return {g:g,r:g.querySelector('rect'),t:g.querySelector('text'),s:+g.dataset.s,w:+g.dataset.w,d:+g.dataset.d,
    name:lines[0],short:g.dataset.n||lines[0],info:lines.slice(1),group:g.classList.contains('g')};
});
var zoomed=frames[0],current=null,typed='';
function y(d){return top0+(icicle?d:rows-1-d)*row}
function label(f,w){
  var n=Math.floor((w-7)/(f.group?6.9:CH));
  if(n<3)return '';
  if(f.name.length<=n)return f.name;
  return f.short.length<=n?f.short:f.short.slice(0,n-1)+'…';
}
function draw(){
  var z=zoomed,e=1e-9;
  frames.forEach(function(f){
    var over=f.d<z.d&&f.s<=z.s+e&&f.s+f.w>=z.s+z.w-e,inside=f.d>=z.d&&f.s>=z.s-e&&f.s+f.w<=z.s+z.w+e;
    if(!over&&!inside){f.g.style.display='none';return}
    var x=over?left:left+(f.s-z.s)/z.w*W,w=over?W:f.w/z.w*W;
    f.g.style.display=w<.1?'none':'';f.shown=w>=.1;f.x=x;f.px=w;
    f.g.classList.toggle('up',over);
    f.r.setAttribute('x',x);f.r.setAttribute('width',w>2?w-.6:Math.max(.2,w));f.r.setAttribute('y',y(f.d));
    f.t.setAttribute('x',x+4);f.t.setAttribute('y',y(f.d)+row-6);f.t.textContent=label(f,w);
  });
  $('reset').style.display=z.d?'':'none';
}
function zoom(f){zoomed=f;draw();hide()}
function share(v){return (100*v).toFixed(v<.0995?2:1)+' %'}
function search(text){
  typed=text;var re=null;
  if(text){try{re=new RegExp(text,'i')}catch(x){re={test:function(s){return s.toLowerCase().indexOf(text.toLowerCase())>=0}}}}
  var spans=[],n=0;
  frames.forEach(function(f){
    var hit=!!re&&!f.group&&re.test(f.name);
    f.g.classList.toggle('hit',hit);
    if(hit){n++;spans.push(f)}
  });
  spans.sort(function(a,b){return a.s-b.s||b.w-a.w});
  var sum=0,end=-1;
  spans.forEach(function(f){var b=Math.max(f.s,end),e=f.s+f.w;if(e>b){sum+=e-b;end=e}});
  $('found').textContent=re?(n?share(sum)+' matched, '+n+(n===1?' frame':' frames'):'nothing matches'):'';
}
function wrap(text,n){var out=[];while(text.length>n&&out.length<3){out.push(text.slice(0,n));text=text.slice(n)}
  out.push(text.length>n?text.slice(0,n-1)+'…':text);return out}
function show(f,px,py){
  var tip=$('tip'),i,lines=wrap(f.name,96),bold=lines.length;lines=lines.concat(f.info);
  while(tip.firstChild)tip.removeChild(tip.firstChild);
  var box=document.createElementNS(NS,'rect');tip.appendChild(box);
  var widest=0;
  for(i=0;i<lines.length;i++){
    var t=document.createElementNS(NS,'text');t.textContent=lines[i];t.setAttribute('x',10);t.setAttribute('y',20+i*17);
    if(i>=bold)t.setAttribute('class','dim');
    tip.appendChild(t);widest=Math.max(widest,t.getComputedTextLength());
  }
  var w=widest+20,h=lines.length*17+12,H=svg.viewBox.baseVal.height;
  box.setAttribute('width',w);box.setAttribute('height',h);box.setAttribute('rx',6);
  var x=Math.min(Math.max(4,px+14),1196-w),yy=py+18+h>H?py-h-8:py+18;
  tip.setAttribute('transform','translate('+Math.max(4,x)+','+Math.max(4,yy)+')');tip.style.display='';
}
function hide(){$('tip').style.display='none';if(current){current.g.classList.remove('on');current=null}}
function choose(f){
  if(!f)return;hide();current=f;f.g.classList.add('on');
  f.r.scrollIntoView&&f.r.scrollIntoView({block:'nearest'});show(f,f.x+Math.min(f.px,200)/2,y(f.d)+row);
}
function best(list){return list.filter(function(f){return f.shown}).sort(function(a,b){return b.w-a.w})[0]}
function step(dd,dx){
  if(!current)return choose(zoomed);
  var c=current,e=1e-9;
  if(dd<0)return choose(frames.filter(function(f){return f.d===c.d-1&&f.s<=c.s+e&&f.s+f.w>=c.s+c.w-e})[0]);
  if(dd>0)return choose(best(frames.filter(function(f){return f.d===c.d+1&&f.s>=c.s-e&&f.s+f.w<=c.s+c.w+e})));
  var same=frames.filter(function(f){return f.d===c.d&&f.shown&&f.g.style.display!=='none'}).sort(function(a,b){return a.s-b.s});
  choose(same[same.indexOf(c)+dx]);
}
frames.forEach(function(f){
  f.g.addEventListener('click',function(){zoom(f)});
  f.g.addEventListener('mousemove',function(ev){
    var p=svg.createSVGPoint();p.x=ev.clientX;p.y=ev.clientY;p=p.matrixTransform(svg.getScreenCTM().inverse());
    if(current&&current!==f)hide();show(f,p.x,p.y);
  });
  f.g.addEventListener('mouseleave',function(){if(current!==f)hide()});
});
$('reset').addEventListener('click',function(){zoom(frames[0])});
var box=$('query');
box.addEventListener('input',function(){search(box.value)});
box.addEventListener('keydown',function(ev){ev.stopPropagation();if(ev.key==='Escape'){box.value='';search('');box.blur()}});
document.addEventListener('keydown',function(ev){
  if(ev.ctrlKey||ev.metaKey||ev.altKey)return;
  var k=ev.key,up=icicle?-1:1;
  if(k==='/'||k==='s'){box.focus();box.select()}
  else if(k==='Escape'){if(current)hide();else if(zoomed.d)zoom(frames[0]);else{box.value='';search('')}}
  else if(k==='Enter'){if(current)zoom(current)}
  else if(k==='ArrowUp')step(up,0);else if(k==='ArrowDown')step(-up,0);
  else if(k==='ArrowLeft')step(0,-1);else if(k==='ArrowRight')step(0,1);
  else if(k==='i'){icicle=!icicle;draw()}
  else if(k==='Backspace'&&zoomed.d){var z=zoomed,e=1e-9;zoom(frames.filter(function(f){return f.d===z.d-1&&f.s<=z.s+e&&f.s+f.w>=z.s+z.w-e})[0]||frames[0])}
  else return;
  ev.preventDefault();
});
draw();
if(!icicle&&svg.getBoundingClientRect().height>window.innerHeight)window.scrollTo(0,1e6);
window.assayFlame={search:search,zoom:function(name){var f=frames.filter(function(x){return x.name===name})[0];if(f)zoom(f)}};
})();
)JS";

}  // namespace assay::formats
